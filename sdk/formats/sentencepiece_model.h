// SentencePiece's own model file, which many Hugging Face folders hold as tokenizer.model, some of them
// without a tokenizer.json beside it. It becomes the tokenizer.json that transformers would make of it.
//
// Honoured: BPE and Unigram, byte fallback, the character map, add_dummy_prefix, remove_extra_whitespaces,
// user-defined, control and unknown pieces; of tokenizer_config.json added_tokens_decoder (also names for
// pieces), add_bos_token, add_eos_token, legacy; added_tokens.json. Refused by name: word and character
// models, white space as suffix, spaces that are not escaped, a denormalizer, classes of transformers that
// renumber pieces, tiktoken's files of the same name.
//
// Merges are ordered by score, as SentencePiece itself joins pieces and transformers' general conversion has
// it. Its LlamaTokenizer (version 5) orders them by id, which differs where scores are equal: published
// vocabularies have runs of spaces with one score for all, and there "    return" would be cut unlike in
// training.
//
// Tests: tokenizer_ids_test.cc (ids of transformers), sentencepiece_test.cc (options, damage).
#ifndef INLAID_SDK_FORMATS_SENTENCEPIECE_MODEL_H_
#define INLAID_SDK_FORMATS_SENTENCEPIECE_MODEL_H_

#include <string>
#include <string_view>

#include "sdk/base/json.h"

namespace inlaid::formats {

// tokenizer.json of the model file `bytes`. `config` is tokenizer_config.json in the form of
// normal_tokenizer_config; the special tokens that it does not name are added to it. `added_tokens` is
// added_tokens.json, an object of texts and ids. kDataLoss or kUnimplemented naming `path`.
std::string sentencepiece_tokenizer_json(std::string_view bytes, const std::string& path, Json& config,
                                         const Json& added_tokens);

}  // namespace inlaid::formats

#endif  // INLAID_SDK_FORMATS_SENTENCEPIECE_MODEL_H_
