// What all kinds of tokenizer inside a GGUF file share: tokens with their types, the ids of special tokens,
// the flags that put tokens around a text. For gguf_tokenizer*.cc.
#ifndef INLAID_SDK_FORMATS_GGUF_VOCABULARY_H_
#define INLAID_SDK_FORMATS_GGUF_VOCABULARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/formats/gguf_file.h"
#include "sdk/formats/sentencepiece.h"

namespace inlaid::formats {

// By tokenizer.ggml.model; kOther is not supported.
enum class GgufTokenizerKind { kByteLevel, kSentencePieceBpe, kUnigram, kWordPiece, kOther };

// "tokenizer.ggml.NAME"
std::string gguf_tokenizer_key(std::string_view name);
std::string gguf_padding_token(size_t id);  // "[PAD7]"

class GgufVocabulary {
 public:
  // kDataLoss for tokens and types that contradict each other.
  explicit GgufVocabulary(const GgufFile& file);

  const GgufFile& file() const { return file_; }
  GgufTokenizerKind kind() const { return kind_; }
  // Number of tokens; unused padding tokens at the end, one for each row that the embedding has too many, do
  // not count.
  size_t size() const { return used_; }
  const std::string& text(size_t id) const { return texts_[id]; }
  PieceType type(size_t id) const { return static_cast<PieceType>(types_[id]); }
  // Tokens and scores; kDataLoss when there are not as many scores.
  std::vector<Piece> pieces() const;

  // Special tokens by "bos", "eos", "unknown", "padding", "seperator" (as GGUF spells it), "cls", "mask",
  // "eot", "eom": the key NAME_token_id, or where that is absent what the kind takes for granted. kDataLoss
  // for an id outside.
  std::optional<int64_t> special_id(std::string_view name) const;
  std::optional<SpecialToken> special(std::string_view name) const;
  // The text as it stands in a tokenizer.json: without the marks of WordPiece's words.
  std::string plain_text(size_t id) const;
  // A flag of tokenizer.ggml, or what the kind takes for granted.
  bool flag(std::string_view name, bool otherwise) const;
  bool is_added(size_t id) const;    // control, unknown, user-defined
  bool is_special(size_t id) const;  // control, unknown

 private:
  const GgufFile& file_;
  GgufTokenizerKind kind_;
  const std::vector<std::string>& texts_;
  std::vector<int64_t> types_;
  size_t used_;
};

}  // namespace inlaid::formats

#endif  // INLAID_SDK_FORMATS_GGUF_VOCABULARY_H_
