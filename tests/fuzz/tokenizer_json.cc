// tokenizer.json: loads or is refused, and what loads encodes and decodes.
#include "tests/fuzz/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlaid;
  std::shared_ptr<const text::Tokenizer> tokenizer;
  if (fuzz::accepts([&] {
        tokenizer = text::Tokenizer::from_json({reinterpret_cast<const char*>(data), size}, "tokenizer.json");
      })) {
    fuzz::check_tokenizer(tokenizer);
  }
  return 0;
}
