// The report of a job, from files that a crash or somebody else has changed. Parts: job.json, data_report.json, events.jsonl.
#include "sdk/train/report/report.h"

#include "sdk/base/testing/memory_file_system.h"
#include "sdk/base/utf8.h"
#include "tests/fuzz/check.h"

namespace {

// A page with one closing tag for each kind of element that a browser would run or draw outside of its place.
bool well_formed(const std::string& page) {
  const auto count = [&](std::string_view tag) {
    size_t n = 0;
    for (size_t at = page.find(tag); at != page.npos; at = page.find(tag, at + 1)) ++n;
    return n;
  };
  return count("<script") == 1 && count("</script>") == 1 && count("<style") == 1 && count("<svg") == count("</svg>") &&
         count("<table") == count("</table>") && count("<img") == 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlaid;
  const std::vector<std::string> parts = fuzz::parts_of(data, size, 3);
  testing::MemoryFileSystem fs;
  fuzz::put_file(fs, "out/job.json", parts[0]);
  if (!parts[1].empty()) fuzz::put_file(fs, "out/data_report.json", parts[1]);
  fuzz::put_file(fs, "out/events.jsonl", parts[2]);
  fuzz::accepts([&] {
    const std::string page = train::report_html(fs, "out");
    FUZZ_REQUIRE(first_invalid_utf8(page) == page.npos);
    FUZZ_REQUIRE(well_formed(page));
  });
  return 0;
}
