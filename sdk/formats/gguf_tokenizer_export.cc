#include <algorithm>
#include <optional>
#include <unordered_map>

#include "sdk/base/error.h"
#include "sdk/formats/gguf_tokenizer.h"
#include "sdk/formats/pre_tokenizers.h"

namespace inlaid::formats {
namespace {

constexpr int64_t kNormal = 1, kControl = 3, kUserDefined = 4, kUnused = 5;
constexpr const char* kWhat = "tokenizer.json";

[[noreturn]] void refuse(const std::string& reason) {
  fail(Code::kUnimplemented, "this tokenizer cannot be written into a GGUF file: ", reason);
}

// The value at a key, null when there is none.
Json member(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? Json() : *found;
}

bool is_true(const Json& object, const char* key) {
  return member(object, key) == true;
}

struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<int64_t> types;
  std::unordered_map<std::string, int64_t> ids;
};

void place(Vocabulary& out, const std::string& token, int64_t id, int64_t type) {
  if (id < 0 || static_cast<size_t>(id) >= out.tokens.size()) {
    fail(Code::kInvalidArgument, kWhat, ": token '", token, "' has id ", id, ", the model has ",
         out.tokens.size(), " embeddings");
  }
  const size_t i = static_cast<size_t>(id);
  if (out.types[i] != kUnused && out.tokens[i] != token) {
    fail(Code::kInvalidArgument, kWhat, ": id ", id, " belongs to both '", out.tokens[i], "' and '", token,
         "'");
  }
  out.tokens[i] = token;
  out.types[i] = type;
  out.ids[token] = id;
}

Vocabulary read_vocabulary(const Json& tokenizer, int64_t rows) {
  Vocabulary out;
  out.types.assign(static_cast<size_t>(rows), kUnused);
  for (int64_t id = 0; id < rows; ++id) out.tokens.push_back("[PAD" + std::to_string(id) + "]");
  const Json& vocab = at(at(tokenizer, "model", kWhat), "vocab", kWhat);
  if (!vocab.is_object()) fail(Code::kInvalidArgument, kWhat, ": key 'model.vocab' must be an object");
  for (const auto& [token, id] : vocab.items()) {
    if (!id.is_number_integer())
      fail(Code::kInvalidArgument, kWhat, ": the id of token '", token, "' must be an integer");
    place(out, token, id.get<int64_t>(), kNormal);
  }
  const Json added = member(tokenizer, "added_tokens");
  for (const auto& entry : added) {
    const std::string token = string_at(entry, "content", kWhat);
    for (const char* flag : {"lstrip", "rstrip", "single_word"}) {
      if (is_true(entry, flag)) refuse("added token '" + token + "' has " + flag + " set");
    }
    place(out, token, int_at(entry, "id", kWhat), is_true(entry, "special") ? kControl : kUserDefined);
  }
  return out;
}

std::vector<std::string> read_merges(const Json& model) {
  std::vector<std::string> out;
  const Json& merges = at(model, "merges", kWhat);
  if (!merges.is_array()) fail(Code::kInvalidArgument, kWhat, ": key 'model.merges' must be a list");
  out.reserve(merges.size());
  for (const Json& merge : merges) {
    std::string text;
    if (merge.is_string()) {
      text = merge.get<std::string>();
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      text = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
    } else {
      fail(Code::kInvalidArgument, kWhat, ": merge ", out.size(), " must be a text or a pair of texts");
    }
    if (std::count(text.begin(), text.end(), ' ') != 1) {
      refuse("merge " + std::to_string(out.size()) + " '" + text + "' has a space inside a token");
    }
    out.push_back(std::move(text));
  }
  return out;
}

PreTokenizer recognise(const Json& tokenizer) {
  const Json& model = at(tokenizer, "model", kWhat);
  const Json type = member(model, "type");
  if (!type.is_null() && type != "BPE") {
    refuse("its model is '" + (type.is_string() ? type.get<std::string>() : "?") + "'; supported is BPE");
  }
  if (is_true(model, "byte_fallback"))
    refuse("it falls back to bytes (SentencePiece); supported is byte-level BPE");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const Json value = member(model, key);
    if (!value.is_null() && value != "") refuse(std::string("model.") + key + " is set");
  }
  const Json pre = member(tokenizer, "pre_tokenizer");
  auto found = pre_tokenizer_like(member(tokenizer, "normalizer"), pre, is_true(model, "ignore_merges"));
  if (!found) {
    refuse("its normalizer and pre_tokenizer are none of the known kinds (" + pre_tokenizer_names() +
           "); pre_tokenizer: " + to_text(pre).substr(0, 200));
  }
  return std::move(*found);
}

struct AddedByTemplate {
  bool bos = false, eos = false;
};

// What the post-processor puts before and behind a text. Only one special token on each side can be expressed
// in GGUF.
AddedByTemplate read_post_processor(const Json& processor) {
  AddedByTemplate out;
  if (processor.is_null()) return out;
  const std::string type = string_at(processor, "type", kWhat);
  if (type == "ByteLevel") return out;  // offsets only
  if (type == "Sequence") {
    for (const Json& inner : at(processor, "processors", kWhat)) {
      const AddedByTemplate part = read_post_processor(inner);
      out.bos |= part.bos;
      out.eos |= part.eos;
    }
    return out;
  }
  if (type != "TemplateProcessing") refuse("its post_processor is '" + type + "'");
  size_t before = 0, behind = 0;
  bool seen = false;
  for (const Json& item : at(processor, "single", kWhat)) {
    if (item.contains("Sequence")) {
      seen = true;
    } else {
      ++(seen ? behind : before);
    }
  }
  if (before > 1 || behind > 1) refuse("its post_processor adds several special tokens on one side");
  out.bos = before == 1;
  out.eos = behind == 1;
  return out;
}

// Ids of special tokens: from the texts in tokenizer_config.json, else from generation_config.json and
// config.json.
class SpecialIds {
 public:
  SpecialIds(const ModelFiles& files, const Vocabulary& vocabulary)
      : files_(files), vocabulary_(vocabulary) {}

  std::optional<int64_t> of(const char* token_key, const char* id_key) const {
    const Json token = member(files_.tokenizer_config, token_key);
    if (token.is_string()) {
      const auto found = vocabulary_.ids.find(token.get<std::string>());
      if (found != vocabulary_.ids.end()) return found->second;
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
      const Json value = member(*source, key);
      const Json list = value.is_array() ? value : Json::array({value});
      for (const Json& id : list) {
        if (!id.is_number_integer()) continue;
        const int64_t n = id.get<int64_t>();
        if (n >= 0 && static_cast<size_t>(n) < vocabulary_.tokens.size()) out.push_back(n);
      }
      if (!out.empty()) return out;
    }
    return out;
  }

  const ModelFiles& files_;
  const Vocabulary& vocabulary_;
};

}  // namespace

GgufEntries gguf_tokenizer_entries(const ModelFiles& files, int64_t vocabulary) {
  GgufEntries out;
  const auto put = [&](const char* key, GgufValue value) {
    out.emplace_back(std::string("tokenizer.ggml.") + key, std::move(value));
  };
  if (!files.tokenizer_json.empty()) {
    const Json tokenizer = parse_json(files.tokenizer_json, kWhat);
    const PreTokenizer pre = recognise(tokenizer);
    Vocabulary tokens = read_vocabulary(tokenizer, vocabulary);
    const AddedByTemplate added = read_post_processor(member(tokenizer, "post_processor"));
    const SpecialIds special(files, tokens);

    put("model", gguf_string("gpt2"));
    put("pre", gguf_string(pre.name));
    put("merges", gguf_strings(read_merges(at(tokenizer, "model", kWhat))));
    const auto bos = special.of("bos_token", "bos_token_id");
    const std::vector<int64_t> ends = special.ends();
    if (bos) put("bos_token_id", gguf_u32(*bos));
    constexpr const char* kEnds[] = {"eos_token_id", "eot_token_id", "eom_token_id"};
    if (ends.size() > std::size(kEnds))
      refuse("it has " + std::to_string(ends.size()) + " end tokens, GGUF has room for 3");
    for (size_t i = 0; i < ends.size(); ++i) put(kEnds[i], gguf_u32(ends[i]));
    if (const auto id = special.of("unk_token", "unk_token_id")) put("unknown_token_id", gguf_u32(*id));
    if (const auto id = special.of("pad_token", "pad_token_id")) put("padding_token_id", gguf_u32(*id));
    if ((added.bos && !bos) || (added.eos && ends.empty()))
      refuse("its post_processor adds a token that has no id");
    put("add_bos_token", gguf_bool(added.bos));
    put("add_eos_token", gguf_bool(added.eos));
    put("add_space_prefix", gguf_bool(false));
    put("token_type", gguf_i32s(std::move(tokens.types)));
    put("tokens", gguf_strings(std::move(tokens.tokens)));
  }
  if (!files.chat_template.empty())
    out.emplace_back("tokenizer.chat_template", gguf_string(files.chat_template));
  return out;
}

}  // namespace inlaid::formats
