// Tokenizers between GGUF metadata and Hugging Face files.
//
//   tokenizer.ggml.model        gpt2: byte-level BPE; llama: SentencePiece BPE; t5: Unigram; bert: WordPiece
//   tokenizer.ggml.tokens       all tokens by id. gpt2: in GPT-2's byte alphabet (a space is "Ġ"); llama and
//   t5: a
//                               space is U+2581; bert: "▁" begins a word, what continues one has no mark
//   tokenizer.ggml.token_type   1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte
//   tokenizer.ggml.scores       llama, t5 (sentencepiece.h)
//   tokenizer.ggml.merges       "left right" in order of rank: gpt2; llama where the scores do not give them
//   tokenizer.ggml.pre          gpt2: how text is split first (pre_tokenizers.h)
//   tokenizer.ggml.add_space_prefix, remove_extra_whitespaces, precompiled_charsmap      llama, t5
//   tokenizer.ggml.normalizer.{lowercase,strip_accents}                                  bert
//   tokenizer.ggml.{bos,eos,eot,eom,unknown,padding,seperator,mask}_token_id, add_{bos,eos,sep}_token
//   tokenizer.huggingface.json  the tokenizer.json itself; when it is there it counts, and must have the same
//   tokens
//
// Control tokens become added tokens that are special, user-defined ones added tokens that are not. An
// embedding with more rows than the tokenizer has tokens is padded in GGUF by unused tokens "[PAD7]"; these
// stay out of tokenizer.json. Byte-level: no unknown token is set in the model: bytes without a token are
// dropped, as the original tokenizer does.
//
// A GGUF file cannot say whether the space in front of a text also stands behind special tokens inside of it.
// llama.cpp puts it there; transformers' import does not, except for Phi-3, and that is what is done here.
// Files written here carry tokenizer.huggingface.json as well, and so come back as they were.
//
// Tests: gguf_tokenizer_test.cc, tokenizer_ids_test.cc (ids), model_test.cc (ids of a real model).
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
