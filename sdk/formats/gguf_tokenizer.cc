#include "sdk/formats/gguf_tokenizer.h"

#include <algorithm>
#include <unordered_map>

#include "sdk/base/error.h"
#include "sdk/formats/pre_tokenizers.h"

namespace inlaid::formats {
namespace {

enum TokenType : int64_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

std::string key_of(std::string_view name) {
  return "tokenizer.ggml." + std::string(name);
}

struct Tokens {
  const std::vector<std::string>& texts;
  std::vector<int64_t> types;
  size_t used;  // ids from here on are padding
};

std::string padding_text(size_t id) {
  return "[PAD" + std::to_string(id) + "]";
}

Tokens read_tokens(const GgufFile& file) {
  Tokens out{file.texts(key_of("tokens")), {}, 0};
  out.types.assign(out.texts.size(), kNormal);
  if (file.find(key_of("token_type")) != nullptr) {
    out.types = file.integers(key_of("token_type"));
    if (out.types.size() != out.texts.size()) {
      fail(Code::kDataLoss, file.path(), ": tokenizer.ggml.token_type has ", out.types.size(),
           " entries, there are ", out.texts.size(), " tokens");
    }
  }
  out.used = out.texts.size();
  while (out.used > 0 && out.types[out.used - 1] == kUnused &&
         out.texts[out.used - 1] == padding_text(out.used - 1)) {
    --out.used;
  }
  return out;
}

// Text of the token at an id named by metadata; "" when the key is absent.
std::string token_at(const GgufFile& file, std::string_view name) {
  const auto id = file.optional_integer(key_of(name));
  if (!id) return "";
  const auto& tokens = file.texts(key_of("tokens"));
  if (*id < 0 || static_cast<uint64_t>(*id) >= tokens.size()) {
    fail(Code::kDataLoss, file.path(), ": ", key_of(name), " is ", *id, ", there are ", tokens.size(),
         " tokens");
  }
  return tokens[static_cast<size_t>(*id)];
}

PreTokenizer read_pre_tokenizer(const GgufFile& file) {
  const std::string model = file.text(key_of("model"));
  if (model != "gpt2") {
    fail(Code::kUnimplemented, file.path(), ": tokenizer.ggml.model '", model,
         "' is not supported; supported is gpt2 (byte-level BPE)");
  }
  const auto pre = file.optional_text(key_of("pre"));
  if (!pre) {
    fail(Code::kUnimplemented, file.path(),
         ": tokenizer.ggml.pre is missing, so that it is unknown how text is split; ", "known are ",
         pre_tokenizer_names());
  }
  auto found = pre_tokenizer_named(*pre);
  if (!found) {
    fail(Code::kUnimplemented, file.path(), ": tokenizer.ggml.pre '", *pre,
         "' is not supported; supported are ", pre_tokenizer_names());
  }
  return std::move(*found);
}

bool adds_bos(const GgufFile& file, const PreTokenizer& pre) {
  return file.optional_flag(key_of("add_bos_token")).value_or(pre.adds_bos);
}
bool adds_eos(const GgufFile& file) {
  return file.optional_flag(key_of("add_eos_token")).value_or(false);
}

Json template_item(const char* kind, const std::string& id, int type) {
  Json out = Json::object();
  out[kind]["id"] = id;
  out[kind]["type_id"] = type;
  return out;
}

// Puts BOS in front and EOS behind, where the file says so; null when it says neither.
Json post_processor(const GgufFile& file, const PreTokenizer& pre) {
  const bool bos = adds_bos(file, pre), eos = adds_eos(file);
  if (!bos && !eos) return nullptr;
  Json out = Json::object();
  out["type"] = "TemplateProcessing";
  out["single"] = Json::array();
  out["pair"] = Json::array();
  out["special_tokens"] = Json::object();
  const auto put = [&](Json& list, std::string_view name, int type) {
    const std::string token = token_at(file, name);
    if (token.empty())
      fail(Code::kDataLoss, file.path(), ": ", key_of(name), " is missing, but the token is to be added");
    list.push_back(template_item("SpecialToken", token, type));
    Json& entry = out["special_tokens"][token];
    entry["id"] = token;
    entry["ids"] = {file.integer(key_of(name))};
    entry["tokens"] = {token};
  };
  for (int part = 0; part < 3; ++part) {  // the single text; the two texts of a pair
    Json& list = part == 0 ? out["single"] : out["pair"];
    const int type = part == 2 ? 1 : 0;
    if (bos) put(list, "bos_token_id", type);
    list.push_back(template_item("Sequence", type == 0 ? "A" : "B", type));
    if (eos) put(list, "eos_token_id", type);
  }
  return out;
}

std::string quoted(const GgufFile& file, const std::string& text) {
  try {
    return to_text(Json(text));
  } catch (const Error&) {
    fail(Code::kDataLoss, file.path(), ": a token of the tokenizer is not UTF-8");
  }
}

bool is_added(int64_t type) {
  return type == kControl || type == kUnknown || type == kUserDefined;
}

// "vocab" and "merges" of the model as text: built by hand, since they have about 100,000 entries.
std::string model_json(const GgufFile& file, const Tokens& tokens, bool ignore_merges) {
  std::unordered_map<std::string_view, size_t> ids;
  ids.reserve(tokens.used);
  std::string out =
      R"({"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,)"
      R"("fuse_unk":false,"byte_fallback":false,"ignore_merges":)";
  out += ignore_merges ? "true" : "false";
  out += ",\"vocab\":{";
  for (size_t id = 0; id < tokens.used; ++id) {
    if (!ids.emplace(tokens.texts[id], id).second) {
      fail(Code::kDataLoss, file.path(), ": tokens ", ids[tokens.texts[id]], " and ", id,
           " have the same text '", tokens.texts[id], "'");
    }
    if (id > 0) out += ',';
    out += quoted(file, tokens.texts[id]);
    out += ':';
    out += std::to_string(id);
  }
  out += "},\"merges\":[";
  const std::vector<std::string>& merges = file.texts(key_of("merges"));
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string& merge = merges[rank];
    const size_t space = merge.find(' ');
    const auto known = [&](const std::string& part) { return ids.contains(part); };
    if (space == std::string::npos || merge.find(' ', space + 1) != std::string::npos ||
        !known(merge.substr(0, space)) || !known(merge.substr(space + 1)) ||
        !known(merge.substr(0, space) + merge.substr(space + 1))) {
      fail(Code::kDataLoss, file.path(), ": merge ", rank, " '", merge,
           "' is not two tokens, separated by one space, whose joined text is a token as well");
    }
    if (rank > 0) out += ',';
    out += quoted(file, merge);
  }
  return out + "]}";
}

}  // namespace

bool has_gguf_tokenizer(const GgufFile& file) {
  return file.find(key_of("model")) != nullptr;
}

std::string gguf_tokenizer_json(const GgufFile& file) {
  const PreTokenizer pre = read_pre_tokenizer(file);
  const Tokens tokens = read_tokens(file);
  const std::string model = model_json(file, tokens, pre.ignore_merges);  // checks the texts of all tokens
  std::string out = R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[)";
  bool first = true;
  for (size_t id = 0; id < tokens.used; ++id) {
    if (!is_added(tokens.types[id])) continue;
    if (!first) out += ',';
    first = false;
    out += to_text(Json{{"id", id},
                        {"content", tokens.texts[id]},
                        {"single_word", false},
                        {"lstrip", false},
                        {"rstrip", false},
                        {"normalized", false},
                        {"special", tokens.types[id] != kUserDefined}});
  }
  Json decoder = Json::object();
  decoder["type"] = "ByteLevel";
  decoder["add_prefix_space"] = true;
  decoder["trim_offsets"] = true;
  decoder["use_regex"] = true;
  out += "],\"normalizer\":" + to_text(pre.normalizer);
  out += ",\"pre_tokenizer\":" + to_text(pre.pre_tokenizer);
  out += ",\"post_processor\":" + to_text(post_processor(file, pre));
  out += ",\"decoder\":" + to_text(decoder);
  out += ",\"model\":" + model + "}";
  return out;
}

Json gguf_tokenizer_config(const GgufFile& file) {
  const PreTokenizer pre = read_pre_tokenizer(file);
  const Tokens tokens = read_tokens(file);
  Json out = Json::object();
  out["tokenizer_class"] = "PreTrainedTokenizerFast";
  out["add_bos_token"] = adds_bos(file, pre);
  out["add_eos_token"] = adds_eos(file);
  constexpr std::pair<const char*, const char*> kSpecial[] = {{"bos_token", "bos_token_id"},
                                                              {"eos_token", "eos_token_id"},
                                                              {"unk_token", "unknown_token_id"},
                                                              {"pad_token", "padding_token_id"}};
  for (const auto& [key, gguf] : kSpecial) {
    if (std::string token = token_at(file, gguf); !token.empty()) out[key] = token;
  }
  if (const auto context = file.optional_integer("llama.context_length")) out["model_max_length"] = *context;
  out["clean_up_tokenization_spaces"] = false;
  Json& added = out["added_tokens_decoder"] = Json::object();
  std::vector<Json::object_t::value_type>& entries = added.get_ref<Json::object_t&>();
  for (size_t id = 0; id < tokens.used; ++id) {
    if (!is_added(tokens.types[id])) continue;
    Json entry = Json::object();
    entry["content"] = tokens.texts[id];
    for (const char* flag : {"lstrip", "normalized", "rstrip", "single_word"}) entry[flag] = false;
    entry["special"] = tokens.types[id] != kUserDefined;
    entries.emplace_back(std::to_string(id),
                         std::move(entry));  // ids are distinct: no search for an equal key
  }
  return out;
}

Json gguf_generation_config(const GgufFile& file) {
  Json out = Json::object();
  if (const auto id = file.optional_integer(key_of("bos_token_id"))) out["bos_token_id"] = *id;
  std::vector<int64_t> ends;
  for (const char* name : {"eos_token_id", "eot_token_id", "eom_token_id"}) {
    const auto id = file.optional_integer(key_of(name));
    if (id && std::find(ends.begin(), ends.end(), *id) == ends.end()) ends.push_back(*id);
  }
  if (ends.size() == 1) out["eos_token_id"] = ends[0];
  if (ends.size() > 1) out["eos_token_id"] = ends;
  if (const auto id = file.optional_integer(key_of("padding_token_id"))) out["pad_token_id"] = *id;
  return out;
}

}  // namespace inlaid::formats
