#include "sdk/formats/gguf_tokenizer_export.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "sdk/base/error.h"
#include "sdk/formats/gguf_tokenizer.h"
#include "sdk/formats/gguf_vocabulary.h"

namespace inlaid::formats {
namespace {

constexpr const char* kWhat = "tokenizer.json";

// One token for each row of the embedding: those of tokenizer.json, and unused ones where it has none.
std::vector<Piece> read_pieces(const Json& tokenizer, int64_t rows) {
  const Json added = member_or_null(tokenizer, "added_tokens");
  for (const Json& entry : added) {
    for (const char* flag : {"lstrip", "rstrip", "single_word"}) {
      if (member_or_null(entry, flag) == true) {
        refuse_tokenizer_export("added token '" + string_at(entry, "content", kWhat) + "' has " + flag +
                                " set");
      }
    }
  }
  const JsonVocabulary vocabulary = json_vocabulary(tokenizer, kWhat);
  std::vector<Piece> out;
  for (size_t id = 0; id < static_cast<size_t>(rows); ++id) {
    out.push_back({gguf_padding_token(id), 0, PieceType::kUnused});
  }
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (!vocabulary.tokens[id]) continue;
    if (id >= out.size()) {
      fail(Code::kInvalidArgument, kWhat, ": token '", *vocabulary.tokens[id], "' has id ", id,
           ", the model has ", out.size(), " embeddings");
    }
    const PieceType type = vocabulary.kinds[id] == JsonVocabulary::Kind::kSpecial ? PieceType::kControl
                           : vocabulary.kinds[id] == JsonVocabulary::Kind::kAdded ? PieceType::kUserDefined
                                                                                  : PieceType::kNormal;
    out[id] = {*vocabulary.tokens[id], vocabulary.scores[id], type};
  }
  return out;
}

GgufTokenizerKind kind_of(const Json& tokenizer) {
  const Json& model = at(tokenizer, "model", kWhat);
  const Json type = member_or_null(model, "type");
  if (type.is_null() || type == "BPE") {
    return member_or_null(model, "byte_fallback") == true ? GgufTokenizerKind::kSentencePieceBpe
                                                          : GgufTokenizerKind::kByteLevel;
  }
  if (type == "Unigram") return GgufTokenizerKind::kUnigram;
  if (type == "WordPiece") return GgufTokenizerKind::kWordPiece;
  refuse_tokenizer_export("its model is '" + (type.is_string() ? type.get<std::string>() : "?") +
                          "'; supported are BPE, Unigram and WordPiece");
}

struct Around {
  std::string before, behind;  // tokens; "" for none
};

// What the post-processor puts before and behind a text. Only one special token on each side can be expressed
// in GGUF.
Around read_post_processor(const Json& processor, bool bert) {
  Around out;
  if (processor.is_null()) return out;
  const std::string type = string_at(processor, "type", kWhat);
  if (type == "ByteLevel") return out;  // offsets only
  if (type == "Sequence") {
    for (const Json& inner : at(processor, "processors", kWhat)) {
      const Around part = read_post_processor(inner, bert);
      if (!part.before.empty()) out.before = part.before;
      if (!part.behind.empty()) out.behind = part.behind;
    }
    return out;
  }
  if (type == "BertProcessing" && bert) {
    const Json cls = at(processor, "cls", kWhat), sep = at(processor, "sep", kWhat);
    if (!cls.is_array() || cls.empty() || !cls[0].is_string() || !sep.is_array() || sep.empty() ||
        !sep[0].is_string())
      fail(Code::kInvalidArgument, kWhat, ": 'cls' and 'sep' of BertProcessing must be a text and an id");
    return {cls[0].get<std::string>(), sep[0].get<std::string>()};
  }
  if (type != "TemplateProcessing") refuse_tokenizer_export("its post_processor is '" + type + "'");
  bool seen = false;
  for (const Json& item : at(processor, "single", kWhat)) {
    if (item.contains("Sequence")) {
      seen = true;
      continue;
    }
    std::string& side = seen ? out.behind : out.before;
    if (!side.empty()) refuse_tokenizer_export("its post_processor adds several special tokens on one side");
    side = string_at(at(item, "SpecialToken", kWhat), "id", kWhat);
  }
  return out;
}

// Ids of special tokens: from the texts in tokenizer_config.json, else from generation_config.json and
// config.json.
class SpecialIds {
 public:
  SpecialIds(const ModelFiles& files, const std::vector<Piece>& pieces)
      : files_(files), rows_(pieces.size()) {
    for (size_t id = 0; id < pieces.size(); ++id) ids_.emplace(pieces[id].text, static_cast<int64_t>(id));
  }

  std::optional<int64_t> of_token(const std::string& token) const {
    const auto found = ids_.find(token);
    return found == ids_.end() ? std::nullopt : std::optional<int64_t>(found->second);
  }

  std::optional<int64_t> of(const char* token_key, const char* id_key) const {
    const Json token = member_or_null(files_.tokenizer_config, token_key);
    if (token.is_string()) {
      if (const auto id = of_token(token.get<std::string>())) return id;
    }
    const std::vector<int64_t> ids = configured(id_key);
    if (ids.empty()) return {};
    return ids[0];
  }

  // Every id that ends an answer, the tokenizer's own first.
  std::vector<int64_t> ends() const {
    std::vector<int64_t> out;
    if (const auto own = of("eos_token", "eos_token_id")) out.push_back(*own);
    for (int64_t id : configured("eos_token_id")) {
      if (std::find(out.begin(), out.end(), id) == out.end()) out.push_back(id);
    }
    return out;
  }

 private:
  // An integer or a list of integers.
  std::vector<int64_t> configured(const char* key) const {
    std::vector<int64_t> out;
    for (const Json* source : {&files_.generation_config, &files_.config}) {
      const Json value = member_or_null(*source, key);
      const Json list = value.is_array() ? value : Json::array({value});
      for (const Json& id : list) {
        if (!id.is_number_integer()) continue;
        const int64_t n = id.get<int64_t>();
        if (n >= 0 && static_cast<size_t>(n) < rows_) out.push_back(n);
      }
      if (!out.empty()) return out;
    }
    return out;
  }

  const ModelFiles& files_;
  size_t rows_;
  std::unordered_map<std::string, int64_t> ids_;
};

// The id of a token that the post-processor adds; it must be the one that GGUF would add.
void check_added(const std::string& token, const std::optional<int64_t>& id, const SpecialIds& special,
                 const char* what) {
  if (token.empty()) return;
  if (!id)
    refuse_tokenizer_export("its post_processor adds '" + token + "', but the " + what + " token has no id");
  if (special.of_token(token) != id)
    refuse_tokenizer_export("its post_processor adds '" + token + "', which is not its " + what + " token");
}

void put_special(GgufEntries& out, const Json& tokenizer, const SpecialIds& special, GgufTokenizerKind kind,
                 std::optional<int64_t> unknown) {
  const auto put = [&](const char* key, GgufValue value) { out.emplace_back(key, std::move(value)); };
  const auto put_id = [&](const char* key, const std::optional<int64_t>& id) {
    if (id) put(key, gguf_u32(*id));
  };
  const bool bert = kind == GgufTokenizerKind::kWordPiece;
  const Around around = read_post_processor(member_or_null(tokenizer, "post_processor"), bert);
  auto bos = special.of("bos_token", "bos_token_id");
  std::vector<int64_t> ends = special.ends();
  if (bert) {
    if (!around.before.empty()) bos = special.of_token(around.before);
    put_id("cls_token_id", bos);
    auto separator = special.of("sep_token", "sep_token_id");
    if (!around.behind.empty()) separator = special.of_token(around.behind);
    put_id("seperator_token_id", separator);
    put_id("mask_token_id", special.of("mask_token", "mask_token_id"));
    put("add_sep_token", gguf_bool(!around.behind.empty()));
  }
  put_id("bos_token_id", bos);
  constexpr const char* kEnds[] = {"eos_token_id", "eot_token_id", "eom_token_id"};
  if (ends.size() > std::size(kEnds))
    refuse_tokenizer_export("it has " + std::to_string(ends.size()) + " end tokens, GGUF has room for 3");
  for (size_t i = 0; i < ends.size(); ++i) put(kEnds[i], gguf_u32(ends[i]));
  put_id("unknown_token_id", unknown ? unknown : special.of("unk_token", "unk_token_id"));
  put_id("padding_token_id", special.of("pad_token", "pad_token_id"));
  check_added(around.before, bos, special, "BOS");
  if (!bert)
    check_added(around.behind, ends.empty() ? std::nullopt : std::optional<int64_t>(ends[0]), special, "EOS");
  put("add_bos_token", gguf_bool(!around.before.empty()));
  put("add_eos_token", gguf_bool(!bert && !around.behind.empty()));
}

}  // namespace

void refuse_tokenizer_export(const std::string& reason) {
  fail(Code::kUnimplemented, "this tokenizer cannot be written into a GGUF file: ", reason);
}

Json member_or_null(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? Json() : *found;
}

GgufEntries gguf_tokenizer_entries(const ModelFiles& files, int64_t vocabulary) {
  GgufEntries out;
  if (!files.tokenizer_json.empty()) {
    const Json tokenizer = parse_json(files.tokenizer_json, kWhat);
    const GgufTokenizerKind kind = kind_of(tokenizer);
    std::vector<Piece> pieces = read_pieces(tokenizer, vocabulary);
    const SpecialIds special(files, pieces);
    std::optional<int64_t> unknown;
    const Json unk =
        member_or_null(tokenizer["model"], kind == GgufTokenizerKind::kUnigram ? "unk_id" : "unk_token");
    if (unk.is_string()) unknown = special.of_token(unk.get<std::string>());
    if (unk.is_number_integer() && unk >= 0 && unk < vocabulary) unknown = unk.get<int64_t>();
    if (unknown && kind != GgufTokenizerKind::kByteLevel)
      pieces[static_cast<size_t>(*unknown)].type = PieceType::kUnknown;

    GgufEntries entries;
    put_special(entries, tokenizer, special, kind, unknown);
    GgufEntries own = kind == GgufTokenizerKind::kByteLevel ? byte_level_entries(tokenizer)
                      : kind == GgufTokenizerKind::kSentencePieceBpe
                          ? sentencepiece_bpe_entries(tokenizer, pieces)
                      : kind == GgufTokenizerKind::kUnigram ? unigram_entries(tokenizer, pieces)
                                                            : word_piece_entries(tokenizer, pieces);
    entries.insert(entries.end(), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
    std::vector<std::string> tokens;
    std::vector<int64_t> types;
    GgufValue scores{GgufType::f32, true, std::vector<double>()};
    for (Piece& piece : pieces) {
      tokens.push_back(std::move(piece.text));
      types.push_back(static_cast<int64_t>(piece.type));
      std::get<std::vector<double>>(scores.data).push_back(piece.score);
    }
    entries.emplace_back("token_type", gguf_i32s(std::move(types)));
    if (kind == GgufTokenizerKind::kSentencePieceBpe || kind == GgufTokenizerKind::kUnigram)
      entries.emplace_back("scores", std::move(scores));
    entries.emplace_back("tokens", gguf_strings(std::move(tokens)));
    for (auto& [key, value] : entries) out.emplace_back(gguf_tokenizer_key(key), std::move(value));
    // The other kinds lose something: where spaces are added, scores of more than 24 bits.
    if (kind != GgufTokenizerKind::kByteLevel)
      out.emplace_back("tokenizer.huggingface.json", gguf_string(files.tokenizer_json));
  }
  if (!files.chat_template.empty())
    out.emplace_back("tokenizer.chat_template", gguf_string(files.chat_template));
  return out;
}

}  // namespace inlaid::formats
