// Program for tests and for golden files:
//   checkpoint_sample write FOLDER [STEP]   writes the sample checkpoint
//   checkpoint_sample verify FOLDER         prints the report of verify() and the manifest as JSON; 1 when damaged
#include <cstdio>
#include <cstdlib>
#include <string>

#include "sdk/base/error.h"
#include "sdk/checkpoint/testing/sample.h"

int main(int count, char** arguments) {
  using namespace inlaid;
  const std::string verb = count > 2 ? arguments[1] : "";
  FileSystem& fs = posix_file_system();
  try {
    if (verb == "write") {
      const checkpoint::testing::Sample sample(count > 3 ? std::atoll(arguments[3]) : 7);
      checkpoint::save(fs, arguments[2], sample.info(), sample.records(), nullptr, /*shard_bytes=*/300);
      return 0;
    }
    if (verb == "verify") {
      const Json report = checkpoint::verify(fs, arguments[2]);
      std::printf("%s\n", to_text(report).c_str());
      if (!report["ok"].get<bool>()) return 1;
      std::printf("%s\n", checkpoint::Reader::open(fs, arguments[2])->manifest_json().c_str());
      return 0;
    }
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: %s\n", code_name(error.code()), error.what());
    return 1;
  }
  std::fprintf(stderr, "usage: checkpoint_sample write FOLDER [STEP] | verify FOLDER\n");
  return 2;
}
