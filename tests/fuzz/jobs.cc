// The list of jobs of a folder, from records that a crash or somebody else has changed. Parts: state.json, job.json,
// checkpoints/index.json. One damaged record never hides the others.
#include "sdk/base/testing/memory_file_system.h"
#include "sdk/train/job_list.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlaid;
  const std::vector<std::string> parts = fuzz::parts_of(data, size, 3);
  testing::MemoryFileSystem fs;
  fuzz::put_file(fs, "jobs/a/job.json", R"({"created": "2026-01-31T00:00:00", "config": {}})");
  fuzz::put_file(fs, "jobs/b/job.json", parts[1]);
  fuzz::put_file(fs, "jobs/b/state.json", parts[0]);
  if (!parts[2].empty()) fuzz::put_file(fs, "jobs/b/checkpoints/index.json", parts[2]);
  const Json jobs = train::list_jobs(fs, "jobs");
  FUZZ_REQUIRE(jobs.size() == 2 && jobs[0]["state"] == "created" && jobs[1]["output_dir"] == "jobs/b");
  FUZZ_REQUIRE(jobs[1]["state"].is_string() && jobs[1]["text"].is_string());
  FUZZ_REQUIRE(parse_json(to_text(jobs), "jobs") == jobs);
  return 0;
}
