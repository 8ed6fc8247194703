#include "sdk/formats/tokenizer_json.h"

#include "sdk/base/error.h"

namespace inlaid::formats {
namespace {

Json part(const char* type) {
  Json out = Json::object();
  out["type"] = type;
  return out;
}

Json template_item(const char* kind, const std::string& id, int type) {
  Json out = Json::object();
  out[kind]["id"] = id;
  out[kind]["type_id"] = type;
  return out;
}

}  // namespace

std::string tokenizer_json_text(const TokenizerParts& parts) {
  std::string out = R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[)";
  for (size_t i = 0; i < parts.added.size(); ++i) {
    const AddedToken& token = parts.added[i];
    if (i > 0) out += ',';
    out += to_text(Json{{"id", token.id},
                        {"content", token.content},
                        {"single_word", false},
                        {"lstrip", false},
                        {"rstrip", false},
                        {"normalized", false},
                        {"special", token.special}});
  }
  out += "],\"normalizer\":" + to_text(parts.normalizer);
  out += ",\"pre_tokenizer\":" + to_text(parts.pre_tokenizer);
  out += ",\"post_processor\":" + to_text(parts.post_processor);
  out += ",\"decoder\":" + to_text(parts.decoder);
  out += ",\"model\":" + parts.model + "}";
  return out;
}

std::string quoted_token(std::string_view token, size_t id, std::string_view what) {
  try {
    return to_text(Json(token));
  } catch (const Error&) {
    fail(Code::kDataLoss, what, ": token ", id, " of the tokenizer is not UTF-8");
  }
}

Json surrounding_tokens(const std::optional<SpecialToken>& before, const std::optional<SpecialToken>& behind,
                        bool pair_once) {
  if (!before && !behind) return nullptr;
  Json out = part("TemplateProcessing");
  out["single"] = Json::array();
  out["pair"] = Json::array();
  out["special_tokens"] = Json::object();
  const auto put = [&](Json& list, const SpecialToken& token, int type) {
    list.push_back(template_item("SpecialToken", token.text, type));
    Json& entry = out["special_tokens"][token.text];
    entry["id"] = token.text;
    entry["ids"] = {token.id};
    entry["tokens"] = {token.text};
  };
  for (int place = 0; place < 3; ++place) {  // the single text; the two texts of a pair
    Json& list = place == 0 ? out["single"] : out["pair"];
    const int type = place == 2 ? 1 : 0;
    if (before && !(pair_once && place == 2)) put(list, *before, type);
    list.push_back(template_item("Sequence", type == 0 ? "A" : "B", type));
    if (behind) put(list, *behind, type);
  }
  return out;
}

Json replace_text(const char* text, const char* by) {
  Json out = part("Replace");
  out["pattern"]["String"] = text;
  out["content"] = by;
  return out;
}

Json replace_regex(const char* regex, const char* by) {
  Json out = part("Replace");
  out["pattern"]["Regex"] = regex;
  out["content"] = by;
  return out;
}

Json split_at(const Json& pattern, const char* behavior) {
  Json out = part("Split");
  out["pattern"] = pattern;
  out["behavior"] = behavior;
  out["invert"] = false;
  return out;
}

Json metaspace(const char* prepend_scheme, bool split) {
  Json out = part("Metaspace");
  out["replacement"] = kSpace;
  out["prepend_scheme"] = prepend_scheme;
  out["split"] = split;
  return out;
}

Json sequence_of(const char* key, std::vector<Json> parts) {
  if (parts.empty()) return nullptr;
  if (parts.size() == 1) return parts[0];
  Json out = part("Sequence");
  out[key] = Json(std::move(parts));
  return out;
}

Json piece_decoder(bool byte_fallback, bool strip_first_space) {
  std::vector<Json> parts = {replace_text(kSpace, " ")};
  if (byte_fallback) parts.push_back(part("ByteFallback"));
  if (byte_fallback || strip_first_space)
    parts.push_back(part("Fuse"));  // Strip looks at every token by itself
  if (strip_first_space) {
    Json strip = part("Strip");
    strip["content"] = " ";
    strip["start"] = 1;
    strip["stop"] = 0;
    parts.push_back(std::move(strip));
  }
  return sequence_of("decoders", std::move(parts));
}

}  // namespace inlaid::formats
