#include "sdk/formats/pre_tokenizers.h"

#include <vector>

namespace inlaid::formats {
namespace {

constexpr const char* kLlama3 =
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
constexpr const char* kQwen2 =
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
// llama.cpp's default, applied one after the other.
constexpr const char* kDefault[] = {
    R"re([\p{P}\$\+<=>\^~\|]+)re",
    R"re('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))re",
    R"re(\p{N}+)re",
    R"re([0-9][0-9][0-9])re",
};

Json byte_level(bool use_regex) {
  Json out = Json::object();
  out["type"] = "ByteLevel";
  out["add_prefix_space"] = false;
  out["trim_offsets"] = true;
  out["use_regex"] = use_regex;  // true: GPT-2's pattern
  return out;
}

Json split(const char* regex) {
  Json out = Json::object();
  out["type"] = "Split";
  out["pattern"]["Regex"] = regex;
  out["behavior"] = "Isolated";
  out["invert"] = false;
  return out;
}

Json digits() {
  Json out = Json::object();
  out["type"] = "Digits";
  out["individual_digits"] = true;
  return out;
}

Json sequence(std::vector<Json> parts) {
  Json out = Json::object();
  out["type"] = "Sequence";
  out["pretokenizers"] = Json(std::move(parts));
  return out;
}

std::vector<PreTokenizer> table() {
  Json nfc = Json::object();
  nfc["type"] = "NFC";
  std::vector<Json> fallback;
  for (const char* regex : kDefault) fallback.push_back(split(regex));
  fallback.push_back(byte_level(false));
  return {
      {"gpt-2", nullptr, byte_level(true), false, false},
      {"smollm", nullptr, sequence({digits(), byte_level(true)}), false, false},
      {"default", nullptr, sequence(std::move(fallback)), false, false},
      {"llama-bpe", nullptr, sequence({split(kLlama3), byte_level(false)}), true, true},
      {"qwen2", nfc, sequence({split(kQwen2), byte_level(false)}), false, false},
  };
}

// The same splitting has several spellings: trim_offsets concerns offsets only, and defaults may be left out.
Json canonical(const Json& part) {
  if (!part.is_object() || !part.contains("type")) return part;
  if (part["type"] == "Sequence" && part.contains("pretokenizers") && part["pretokenizers"].is_array()) {
    std::vector<Json> parts;
    for (const Json& inner : part["pretokenizers"]) parts.push_back(canonical(inner));
    return parts.size() == 1 ? parts[0] : sequence(std::move(parts));
  }
  if (part["type"] == "ByteLevel") {
    Json out = byte_level(part.value("use_regex", true));
    out["add_prefix_space"] = part.value("add_prefix_space", true);
    return out;
  }
  if (part["type"] == "Split") {
    Json out = split("");
    out["pattern"] = part.contains("pattern") ? part["pattern"] : Json();
    out["behavior"] = part.contains("behavior") ? part["behavior"] : Json();
    out["invert"] = part.value("invert", false);
    return out;
  }
  return part;
}

}  // namespace

std::optional<PreTokenizer> pre_tokenizer_named(std::string_view name) {
  for (PreTokenizer& entry : table()) {
    if (entry.name == name) return std::move(entry);
  }
  return {};
}

std::optional<PreTokenizer> pre_tokenizer_like(const Json& normalizer, const Json& pre_tokenizer,
                                               bool ignore_merges) {
  Json seen;
  try {
    seen = canonical(pre_tokenizer);
  } catch (const Json::exception&) {
    return {};  // a value of a wrong type: no known structure
  }
  for (PreTokenizer& entry : table()) {
    if (entry.ignore_merges == ignore_merges && entry.normalizer == normalizer &&
        entry.pre_tokenizer == seen) {
      return std::move(entry);
    }
  }
  return {};
}

std::string pre_tokenizer_names() {
  std::string out;
  for (const PreTokenizer& entry : table()) out += (out.empty() ? "" : ", ") + entry.name;
  return out;
}

}  // namespace inlaid::formats
