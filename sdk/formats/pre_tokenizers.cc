#include "sdk/formats/pre_tokenizers.h"

#include <algorithm>

#include "sdk/formats/pre_tokenizer_table.h"
#include "sdk/formats/tokenizer_json.h"

namespace inlaid::formats {
namespace {

Json byte_level(bool use_regex) {
  Json out = Json::object();
  out["type"] = "ByteLevel";
  out["add_prefix_space"] = false;
  out["trim_offsets"] = true;
  out["use_regex"] = use_regex;  // true: GPT-2's pattern
  return out;
}

Json split(std::string_view regex) {
  Json pattern = Json::object();
  pattern["Regex"] = regex;
  return split_at(pattern, "Isolated");
}

Json digits() {
  Json out = Json::object();
  out["type"] = "Digits";
  out["individual_digits"] = true;
  return out;
}

PreTokenizer from_row(const PreTokenizerRow& row, std::string_view name) {
  std::vector<Json> parts;
  bool gpt2 = false;
  for (std::string_view regex : row.splits) {
    if (regex == "gpt2") {
      gpt2 = true;  // the last
    } else {
      parts.push_back(regex == "digits" ? digits() : split(regex));
    }
  }
  parts.push_back(byte_level(gpt2));
  PreTokenizer out;
  out.name = name;
  if (row.nfc) out.normalizer["type"] = "NFC";
  out.pre_tokenizer = sequence_of("pretokenizers", std::move(parts));
  out.ignore_merges = row.ignore_merges;
  out.adds_bos = row.adds_bos;
  return out;
}

// The words of a list that is separated by spaces.
std::vector<std::string_view> words(std::string_view list) {
  std::vector<std::string_view> out;
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(' ', at), list.size());
    out.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

bool has_word(std::string_view list, std::string_view word) {
  const std::vector<std::string_view> all = words(list);
  return std::find(all.begin(), all.end(), word) != all.end();
}

// The same splitting has several spellings: trim_offsets concerns offsets only, and defaults may be left out.
Json canonical(const Json& part) {
  if (!part.is_object() || !part.contains("type")) return part;
  if (part["type"] == "Sequence" && part.contains("pretokenizers") && part["pretokenizers"].is_array()) {
    std::vector<Json> parts;
    for (const Json& inner : part["pretokenizers"]) parts.push_back(canonical(inner));
    return sequence_of("pretokenizers", std::move(parts));
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
  for (const PreTokenizerRow& row : pre_tokenizer_rows()) {
    if (has_word(row.names, name)) return from_row(row, name);
  }
  return {};
}

std::string pre_tokenizer_refusal(std::string_view name) {
  for (const RefusedPreTokenizer& refused : refused_pre_tokenizers()) {
    if (has_word(refused.names, name)) return std::string(refused.reason);
  }
  return "";
}

std::optional<PreTokenizer> pre_tokenizer_like(const Json& normalizer, const Json& pre_tokenizer,
                                               bool ignore_merges) {
  Json seen;
  try {
    seen = canonical(pre_tokenizer);
  } catch (const Json::exception&) {
    return {};  // a value of a wrong type: no known structure
  }
  for (const PreTokenizerRow& row : pre_tokenizer_rows()) {
    PreTokenizer entry = from_row(row, words(row.names)[0]);
    if (entry.ignore_merges == ignore_merges && entry.normalizer == normalizer &&
        entry.pre_tokenizer == seen) {
      return entry;
    }
  }
  return {};
}

std::vector<std::string_view> pre_tokenizer_list() {
  std::vector<std::string_view> out;
  for (const PreTokenizerRow& row : pre_tokenizer_rows()) {
    for (std::string_view name : words(row.names)) out.push_back(name);
  }
  return out;
}

std::string pre_tokenizer_names() {
  std::string out;
  for (std::string_view name : pre_tokenizer_list()) out += (out.empty() ? "" : ", ") + std::string(name);
  return out;
}

}  // namespace inlaid::formats
