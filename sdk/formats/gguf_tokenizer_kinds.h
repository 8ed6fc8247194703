// One tokenizer.json for each kind of tokenizer in a GGUF file, all parts but the post-processor.
#ifndef INLAID_SDK_FORMATS_GGUF_TOKENIZER_KINDS_H_
#define INLAID_SDK_FORMATS_GGUF_TOKENIZER_KINDS_H_

#include "sdk/formats/gguf_vocabulary.h"
#include "sdk/formats/pre_tokenizers.h"

namespace inlaid::formats {

// The pre-tokenizer of a byte-level vocabulary; kUnimplemented naming one that is not supported.
PreTokenizer gguf_pre_tokenizer(const GgufFile& file);
TokenizerParts byte_level_parts(const GgufVocabulary& vocabulary);
TokenizerParts sentencepiece_bpe_parts(const GgufVocabulary& vocabulary);
TokenizerParts unigram_parts(const GgufVocabulary& vocabulary);
TokenizerParts word_piece_parts(const GgufVocabulary& vocabulary);

}  // namespace inlaid::formats

#endif  // INLAID_SDK_FORMATS_GGUF_TOKENIZER_KINDS_H_
