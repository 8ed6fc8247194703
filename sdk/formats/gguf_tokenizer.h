// Tokenizers between GGUF metadata and Hugging Face files, for byte-level BPE (tokenizer.ggml.model =
// "gpt2").
//
//   tokenizer.ggml.tokens       all tokens by id, in GPT-2's byte alphabet (a space is "Ġ")
//   tokenizer.ggml.token_type   1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte
//   tokenizer.ggml.merges       "left right" in order of rank
//   tokenizer.ggml.pre          how text is split first (pre_tokenizers.h)
//   tokenizer.ggml.{bos,eos,eot,eom,unknown,padding}_token_id, add_bos_token, add_eos_token
//
// Control tokens become added tokens that are special, user-defined ones added tokens that are not. An
// embedding with more rows than the tokenizer has tokens is padded in GGUF by unused tokens "[PAD7]"; these
// stay out of tokenizer.json. No unknown token is set in the model: bytes without a token are dropped, as the
// original tokenizer does.
//
// Tests: gguf_tokenizer_test.cc, model_test.cc (ids of a real model).
#ifndef INLAID_SDK_FORMATS_GGUF_TOKENIZER_H_
#define INLAID_SDK_FORMATS_GGUF_TOKENIZER_H_

#include <string>

#include "sdk/formats/gguf_config.h"
#include "sdk/formats/gguf_file.h"
#include "sdk/formats/weight_source.h"

namespace inlaid::formats {

// True if the file holds a tokenizer at all.
bool has_gguf_tokenizer(const GgufFile& file);
// tokenizer.json. kUnimplemented names a tokenizer kind or pre-tokenizer that is not known; kDataLoss names a
// token or merge that contradicts the rest.
std::string gguf_tokenizer_json(const GgufFile& file);
// tokenizer_config.json: special tokens, add_bos_token, add_eos_token.
Json gguf_tokenizer_config(const GgufFile& file);
// generation_config.json: bos, pad, and every id at which an answer ends.
Json gguf_generation_config(const GgufFile& file);

// The tokenizer entries of a GGUF file to be written; `vocabulary` rows of the embedding. kUnimplemented says
// what of the tokenizer a GGUF file cannot express.
GgufEntries gguf_tokenizer_entries(const ModelFiles& files, int64_t vocabulary);

}  // namespace inlaid::formats

#endif  // INLAID_SDK_FORMATS_GGUF_TOKENIZER_H_
