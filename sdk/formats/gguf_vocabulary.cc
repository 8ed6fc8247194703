#include "sdk/formats/gguf_vocabulary.h"

#include "sdk/base/error.h"

namespace inlaid::formats {
namespace {

GgufTokenizerKind kind_of(const GgufFile& file) {
  const std::string model = file.text(gguf_tokenizer_key("model"));
  if (model == "gpt2") return GgufTokenizerKind::kByteLevel;
  if (model == "llama") return GgufTokenizerKind::kSentencePieceBpe;
  if (model == "t5") return GgufTokenizerKind::kUnigram;
  if (model == "bert") return GgufTokenizerKind::kWordPiece;
  return GgufTokenizerKind::kOther;
}

// What llama.cpp takes for granted when a key is absent. For byte-level vocabularies it would be 11, which
// means nothing outside of one old model.
std::optional<int64_t> assumed_id(GgufTokenizerKind kind, std::string_view name) {
  switch (kind) {
    case GgufTokenizerKind::kByteLevel:
    case GgufTokenizerKind::kOther:
      break;
    case GgufTokenizerKind::kSentencePieceBpe:
      if (name == "bos") return 1;
      if (name == "eos") return 2;
      if (name == "unknown") return 0;
      break;
    case GgufTokenizerKind::kUnigram:
      if (name == "eos") return 1;
      if (name == "unknown") return 2;
      if (name == "padding") return 0;
      break;
    case GgufTokenizerKind::kWordPiece:
      if (name == "bos") return 101;
      if (name == "unknown") return 100;
      if (name == "seperator") return 102;
      if (name == "padding") return 0;
      if (name == "mask") return 103;
      break;
  }
  return {};
}

}  // namespace

std::string gguf_tokenizer_key(std::string_view name) {
  return "tokenizer.ggml." + std::string(name);
}

std::string gguf_padding_token(size_t id) {
  return "[PAD" + std::to_string(id) + "]";
}

GgufVocabulary::GgufVocabulary(const GgufFile& file)
    : file_(file), kind_(kind_of(file)), texts_(file.texts(gguf_tokenizer_key("tokens"))) {
  types_.assign(texts_.size(), static_cast<int64_t>(PieceType::kNormal));
  if (file.find(gguf_tokenizer_key("token_type")) != nullptr) {
    types_ = file.integers(gguf_tokenizer_key("token_type"));
    if (types_.size() != texts_.size()) {
      fail(Code::kDataLoss, file.path(), ": tokenizer.ggml.token_type has ", types_.size(),
           " entries, there are ", texts_.size(), " tokens");
    }
  }
  used_ = texts_.size();
  while (used_ > 0 && type(used_ - 1) == PieceType::kUnused &&
         texts_[used_ - 1] == gguf_padding_token(used_ - 1)) {
    --used_;
  }
}

std::vector<Piece> GgufVocabulary::pieces() const {
  const std::string key = gguf_tokenizer_key("scores");
  std::vector<double> scores(texts_.size());
  if (const GgufValue* value = file_.find(key);
      value != nullptr && !std::holds_alternative<std::vector<double>>(value->data)) {
    const std::vector<int64_t> integers = file_.integers(key);
    scores.assign(integers.begin(), integers.end());
  } else if (value != nullptr) {
    scores = std::get<std::vector<double>>(value->data);
  } else if (kind_ == GgufTokenizerKind::kUnigram || file_.find(gguf_tokenizer_key("merges")) == nullptr) {
    fail(Code::kDataLoss, file_.path(), ": ", key, " is missing");
  }
  if (scores.size() != texts_.size()) {
    fail(Code::kDataLoss, file_.path(), ": ", key, " has ", scores.size(), " entries, there are ",
         texts_.size(), " tokens");
  }
  std::vector<Piece> out;
  out.reserve(used_);
  for (size_t id = 0; id < used_; ++id) out.push_back({texts_[id], scores[id], type(id)});
  return out;
}

std::optional<int64_t> GgufVocabulary::special_id(std::string_view name) const {
  const std::string key = gguf_tokenizer_key(std::string(name) + "_token_id");
  const auto given = file_.optional_integer(key);
  if (!given) {
    const auto assumed = assumed_id(kind_, name);
    if (!assumed || static_cast<size_t>(*assumed) >= used_ || !is_special(static_cast<size_t>(*assumed)))
      return {};
    return assumed;
  }
  if (*given < 0 || static_cast<uint64_t>(*given) >= texts_.size()) {
    fail(Code::kDataLoss, file_.path(), ": ", key, " is ", *given, ", there are ", texts_.size(), " tokens");
  }
  return given;
}

std::optional<SpecialToken> GgufVocabulary::special(std::string_view name) const {
  const auto id = special_id(name);
  if (!id) return {};
  return SpecialToken{plain_text(static_cast<size_t>(*id)), *id};
}

std::string GgufVocabulary::plain_text(size_t id) const {
  const std::string& text = texts_[id];
  if (kind_ != GgufTokenizerKind::kWordPiece || is_added(id)) return text;
  if (text.starts_with(kSpace)) return text.substr(std::string_view(kSpace).size());
  // "[unused7]": converters leave these without a mark.
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') return text;
  return "##" + text;
}

bool GgufVocabulary::flag(std::string_view name, bool otherwise) const {
  return file_.optional_flag(gguf_tokenizer_key(name)).value_or(otherwise);
}

bool GgufVocabulary::is_special(size_t id) const {
  return type(id) == PieceType::kControl || type(id) == PieceType::kUnknown;
}

bool GgufVocabulary::is_added(size_t id) const {
  return is_special(id) || type(id) == PieceType::kUserDefined;
}

}  // namespace inlaid::formats
