// Between the files that write a tokenizer's GGUF entries.
#ifndef INLAID_SDK_FORMATS_GGUF_TOKENIZER_EXPORT_H_
#define INLAID_SDK_FORMATS_GGUF_TOKENIZER_EXPORT_H_

#include <string>
#include <vector>

#include "sdk/formats/gguf_config.h"
#include "sdk/formats/json_vocabulary.h"
#include "sdk/formats/sentencepiece.h"

namespace inlaid::formats {

[[noreturn]] void refuse_tokenizer_export(const std::string& reason);
// The value at a key, null when there is none.
Json member_or_null(const Json& object, const char* key);

// Entries that only one kind of tokenizer has, without "tokenizer.ggml.", and what it says about every token
// of `pieces` (text as in tokenizer.json; types of added tokens are set; one for each row of the embedding):
// its text as GGUF wants it, its type and its score.
GgufEntries byte_level_entries(const Json& tokenizer);
GgufEntries sentencepiece_bpe_entries(const Json& tokenizer, std::vector<Piece>& pieces);
GgufEntries unigram_entries(const Json& tokenizer, std::vector<Piece>& pieces);
GgufEntries word_piece_entries(const Json& tokenizer, std::vector<Piece>& pieces);

}  // namespace inlaid::formats

#endif  // INLAID_SDK_FORMATS_GGUF_TOKENIZER_EXPORT_H_
