// The configuration of a job, and changes to one that is there. Parts: the document; a path; a value for it.
#include "sdk/config/config.h"

#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlaid;
  using config::Config;
  const std::vector<std::string> parts = fuzz::parts_of(data, size, 3);
  Config config;
  if (!fuzz::accepts([&] { config = Config::parse(parts[0], "/jobs"); })) {
    config = Config::parse("{}");
  }
  fuzz::accepts([&] { config.check_job(); });
  const std::string canonical = config.to_json();
  // A fault here would be an Error that nobody catches: the canonical form is always valid.
  FUZZ_REQUIRE(Config::parse(canonical).to_json() == canonical);
  if (!fuzz::accepts([&] { config.set(parts[1], parts[2]); })) {
    FUZZ_REQUIRE(config.to_json() == canonical);
    return 0;
  }
  const std::string changed = config.to_json();
  FUZZ_REQUIRE(Config::parse(changed).to_json() == changed);
  fuzz::accepts([&] { config.value(parts[1]); });
  return 0;
}
