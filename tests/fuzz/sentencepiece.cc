// tokenizer.model with the small files around it. Parts: tokenizer_config.json, added_tokens.json, tokenizer.model.
#include "sdk/base/testing/memory_file_system.h"
#include "sdk/formats/hugging_face.h"
#include "tests/fuzz/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlaid;
  const std::vector<std::string> parts = fuzz::parts_of(data, size, 3);
  testing::MemoryFileSystem fs;
  constexpr const char* kNames[] = {"model/tokenizer_config.json", "model/added_tokens.json", "model/tokenizer.model"};
  for (size_t i = 0; i < 3; ++i) {
    if (!parts[i].empty() || i == 2) fuzz::put_file(fs, kNames[i], parts[i]);
  }
  formats::ModelFiles files;
  if (!fuzz::accepts([&] { formats::read_hugging_face_tokenizer(fs, "model", files); })) return 0;
  // What we make must be a tokenizer.json, but the crate may refuse what is in it (a character map, say).
  FUZZ_REQUIRE(parse_json(files.tokenizer_json, "made of tokenizer.model").is_object());
  std::shared_ptr<const text::Tokenizer> tokenizer;
  if (fuzz::accepts([&] { tokenizer = text::Tokenizer::from_json(files.tokenizer_json, "tokenizer.model"); })) {
    fuzz::check_tokenizer(tokenizer);
  }
  return 0;
}
