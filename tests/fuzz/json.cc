// The JSON parser under everything: what it accepts is written and read again as the same value.
#include "sdk/base/json.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlaid;
  fuzz::accepts([&] {
    const Json value = parse_json({reinterpret_cast<const char*>(data), size}, "input.json");
    const std::string text = to_text(value);
    const Json again = parse_json(text, "written.json");
    FUZZ_REQUIRE(to_text(again) == text);
  });
  return 0;
}
