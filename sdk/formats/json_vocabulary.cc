#include "sdk/formats/json_vocabulary.h"

#include "sdk/base/error.h"

namespace inlaid::formats {
namespace {

constexpr int64_t kMaxId = (1 << 24) - 1;  // as text::Tokenizer
// Ids without a token take memory as well. Published vocabularies have few gaps.
constexpr size_t kMaxGap = 100'000;

void place(JsonVocabulary& out, const std::string& token, int64_t id, JsonVocabulary::Kind kind, double score,
           size_t entries, std::string_view what) {
  if (id < 0 || id > kMaxId)
    fail(Code::kInvalidArgument, what, ": token '", token, "' has the impossible id ", id);
  const size_t i = static_cast<size_t>(id);
  if (i >= out.tokens.size()) {
    if (i > 2 * entries + kMaxGap) {
      fail(Code::kInvalidArgument, what, ": token '", token, "' has id ", id, ", but there are ", entries, " tokens only");
    }
    out.tokens.resize(i + 1);
    out.kinds.resize(i + 1, JsonVocabulary::Kind::kModel);
    out.scores.resize(i + 1);
  }
  if (out.tokens[i] && *out.tokens[i] != token) {
    fail(Code::kInvalidArgument, what, ": id ", id, " belongs to both '", *out.tokens[i], "' and '", token,
         "'");
  }
  out.tokens[i] = token;
  out.kinds[i] = kind;
  if (kind == JsonVocabulary::Kind::kModel) out.scores[i] = score;
}

}  // namespace

JsonVocabulary json_vocabulary(const Json& tokenizer, std::string_view what) {
  JsonVocabulary out;
  const Json& vocab = at(at(tokenizer, "model", what), "vocab", what);
  const auto added = tokenizer.find("added_tokens");
  const size_t entries = vocab.size() + (added == tokenizer.end() ? 0 : added->size());
  if (vocab.is_object()) {
    for (const auto& [token, id] : vocab.items()) {
      if (!id.is_number_integer())
        fail(Code::kInvalidArgument, what, ": the id of token '", token, "' must be an integer");
      place(out, token, id.get<int64_t>(), JsonVocabulary::Kind::kModel, 0, entries, what);
    }
  } else if (vocab.is_array() && !vocab.empty()) {
    for (const Json& entry : vocab) {
      const auto id = static_cast<int64_t>(&entry - &vocab[0]);
      if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number())
        fail(Code::kInvalidArgument, what, ": entry ", id, " of model.vocab must be a text and a score");
      place(out, entry[0].get<std::string>(), id, JsonVocabulary::Kind::kModel, entry[1].get<double>(), entries, what);
    }
  } else {
    fail(Code::kInvalidArgument, what,
         ": key 'model.vocab' must be an object of tokens and ids, or a list of tokens "
         "and scores");
  }
  if (added == tokenizer.end()) return out;
  for (const Json& entry : *added) {
    const auto special = entry.find("special");
    place(out, string_at(entry, "content", what), int_at(entry, "id", what),
          special != entry.end() && *special == true ? JsonVocabulary::Kind::kSpecial
                                                     : JsonVocabulary::Kind::kAdded,
          0, entries, what);
  }
  return out;
}

}  // namespace inlaid::formats
