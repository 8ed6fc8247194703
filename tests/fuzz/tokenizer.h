// What a tokenizer that loads must do, whatever file made it.
#ifndef INLAID_TESTS_FUZZ_TOKENIZER_H_
#define INLAID_TESTS_FUZZ_TOKENIZER_H_

#include <memory>
#include <string>

#include "sdk/text/tokenizer.h"
#include "tests/fuzz/check.h"

namespace inlaid::fuzz {

// Ids are tokens of the vocabulary and their ranges lie in the text; a stream gives what decode() gives.
inline void check_tokenizer(const std::shared_ptr<const text::Tokenizer>& tokenizer) {
  for (const std::string text : {"", " The quick <s> brown\n\tfox: 12345 \u00e9\u6771\u200d\U0001F418</s>  aaab"}) {
    for (const bool special : {false, true}) {
      accepts([&] {
        const text::Encoding encoding = tokenizer->encode(text, special);
        FUZZ_REQUIRE(encoding.begin.size() == encoding.ids.size() && encoding.end.size() == encoding.ids.size());
        for (size_t i = 0; i < encoding.ids.size(); ++i) {
          FUZZ_REQUIRE(encoding.begin[i] <= encoding.end[i] && encoding.end[i] <= text.size());
          FUZZ_REQUIRE(tokenizer->id_to_token(encoding.ids[i]).has_value());
        }
        const std::string whole = tokenizer->decode(encoding.ids, special);
        text::DecodeStream stream(tokenizer, special);
        std::string pieces;
        for (const int32_t id : encoding.ids) pieces += stream.push(id);
        pieces += stream.finish();
        FUZZ_REQUIRE(pieces == whole);
      });
    }
  }
  FUZZ_REQUIRE(!tokenizer->id_to_token(-1) && !tokenizer->id_to_token(tokenizer->vocab_size()));
}

}  // namespace inlaid::fuzz

#endif  // INLAID_TESTS_FUZZ_TOKENIZER_H_
