// tokenizer.ggml.model = "llama", "t5" and "bert".
#include <algorithm>
#include <set>
#include <unordered_map>

#include "sdk/base/error.h"
#include "sdk/formats/gguf_tokenizer_export.h"

namespace inlaid::formats {
namespace {

constexpr const char* kWhat = "tokenizer.json";

std::vector<Json> flattened(const Json& part, const char* key) {
  if (part.is_null()) return {};
  if (member_or_null(part, "type") != "Sequence") return {part};
  std::vector<Json> out;
  for (const Json& inner : at(part, key, kWhat)) {
    for (Json& item : flattened(inner, key)) out.push_back(std::move(item));
  }
  return out;
}

std::string from_base64(const std::string& text) {
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (char c : text) {
    if (c == '=') break;
    const std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t digit = digits.find(c);
    if (digit == digits.npos) fail(Code::kInvalidArgument, kWhat, ": 'precompiled_charsmap' is not base64");
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if ((count += 6) >= 8) out += static_cast<char>(bits >> (count -= 8));
  }
  return out;
}

// What the normalizer and pre-tokenizer of a SentencePiece-like tokenizer do.
struct Spaces {
  bool prefix = false, remove_extra = false;
  std::string character_map;
  std::set<std::string> user_defined;
};

// Texts of a regular expression "a\|b|c": those that are split off as they are.
std::set<std::string> alternatives(const std::string& regex) {
  std::set<std::string> out;
  std::string text;
  for (size_t i = 0; i < regex.size(); ++i) {
    if (regex[i] == '\\' && i + 1 < regex.size() && !std::isalnum(static_cast<unsigned char>(regex[i + 1]))) {
      text += regex[++i];
    } else if (regex[i] == '|') {
      out.insert(std::move(text));
      text.clear();
    } else if (std::string_view(R"(\.^$?*+()[]{})").find(regex[i]) != std::string_view::npos) {
      refuse_tokenizer_export("its pre_tokenizer splits at the regular expression " + regex);
    } else {
      text += regex[i];
    }
  }
  out.insert(std::move(text));
  return out;
}

bool replaces(const Json& part, const char* kind, const std::string& from, const std::string& to) {
  const Json pattern = member_or_null(part, "pattern");
  return part["type"] == "Replace" && pattern.is_object() && member_or_null(pattern, kind) == from &&
         member_or_null(part, "content") == to;
}

Spaces read_spaces(const Json& tokenizer, bool unigram) {
  Spaces out;
  const std::string space = kSpace;
  for (const Json& part : flattened(member_or_null(tokenizer, "normalizer"), "normalizers")) {
    const std::string type = string_at(part, "type", kWhat);
    const bool strips_end = type == "Strip" && member_or_null(part, "strip_right") == true;
    if (type == "Prepend" && member_or_null(part, "prepend") == space) {
      out.prefix = true;
    } else if (type == "Precompiled" && unigram) {
      out.character_map = from_base64(string_at(part, "precompiled_charsmap", kWhat));
    } else if (strips_end || replaces(part, "Regex", " {2,}", " ") ||
               replaces(part, "Regex", " {2,}", space) || replaces(part, "Regex", R"(\A +| +\z)", "")) {
      if (!unigram) refuse_tokenizer_export("its normalizer removes spaces");
      out.remove_extra = true;
    } else if (!replaces(part, "String", " ", space) &&
               !replaces(part, "Regex", "\\A" + space, space + space)) {
      refuse_tokenizer_export("its normalizer has the part " + to_text(part).substr(0, 200));
    }
  }
  for (const Json& part : flattened(member_or_null(tokenizer, "pre_tokenizer"), "pretokenizers")) {
    const std::string type = string_at(part, "type", kWhat);
    const Json pattern = member_or_null(part, "pattern");
    if (type == "Metaspace" && (unigram || member_or_null(part, "split") == false)) {
      out.prefix = member_or_null(part, "prepend_scheme") != "never" &&
                   member_or_null(part, "add_prefix_space") != false;
    } else if (type == "WhitespaceSplit" && unigram) {
      out.remove_extra = true;
    } else if (type == "Split" && pattern.is_object() && pattern.contains("Regex") &&
               pattern["Regex"].is_string() && member_or_null(part, "behavior") == "Isolated") {
      out.user_defined = alternatives(pattern["Regex"].get<std::string>());
    } else if (type != "Split" || !pattern.is_object() || member_or_null(pattern, "String") != " ") {
      refuse_tokenizer_export("its pre_tokenizer has the part " + to_text(part).substr(0, 200));
    }
  }
  return out;
}

void set_types(std::vector<Piece>& pieces, const Spaces& spaces, bool byte_fallback) {
  for (Piece& piece : pieces) {
    if (piece.type != PieceType::kNormal) continue;
    if (byte_fallback && is_byte_piece(piece.text)) piece.type = PieceType::kByte;
    if (spaces.user_defined.contains(piece.text)) piece.type = PieceType::kUserDefined;
  }
}

Merges read_merges(const Json& model, const std::vector<Piece>& pieces) {
  std::unordered_map<std::string_view, uint32_t> ids;
  for (size_t id = 0; id < pieces.size(); ++id) ids.emplace(pieces[id].text, static_cast<uint32_t>(id));
  const Json& list = at(model, "merges", kWhat);
  if (!list.is_array()) fail(Code::kInvalidArgument, kWhat, ": key 'model.merges' must be a list");
  Merges out;
  for (const Json& merge : list) {
    std::string left, right;
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      left = merge[0].get<std::string>();
      right = merge[1].get<std::string>();
    } else if (merge.is_string()) {
      const std::string text = merge.get<std::string>();
      const size_t space = std::min(text.find(' '), text.size());
      left = text.substr(0, space);
      right = text.substr(std::min(space + 1, text.size()));
    }
    const auto l = ids.find(left), r = ids.find(right);
    if (l == ids.end() || r == ids.end() || !ids.contains(left + right))
      fail(Code::kInvalidArgument, kWhat, ": merge ", out.size(),
           " must be two tokens whose joined text is a token");
    out.emplace_back(l->second, r->second);
  }
  return out;
}

// Scores from which the merges follow: SentencePiece joins what makes the piece with the highest score.
// Refused when no scores can say it: the merges of a piece must stand together, and every way to cut a normal
// piece in two must be one.
void set_scores(std::vector<Piece>& pieces, const Merges& merges) {
  std::unordered_map<std::string_view, uint32_t> ids;
  for (size_t id = 0; id < pieces.size(); ++id) ids.emplace(pieces[id].text, static_cast<uint32_t>(id));
  double next = 0;
  std::string current;
  std::vector<bool> scored(pieces.size());
  for (const auto& [left, right] : merges) {
    const std::string text = pieces[left].text + pieces[right].text;
    if (text == current) continue;
    const uint32_t whole = ids.at(text);
    if (scored[whole])
      refuse_tokenizer_export("its merges do not follow from scores of tokens ('" + text + "')");
    scored[whole] = true;
    pieces[whole].score = -next++;
    current = text;
  }
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (!scored[id]) pieces[id].score = pieces[id].type == PieceType::kNormal ? -next : 0;
  }
  const std::set<std::pair<uint32_t, uint32_t>> given(merges.begin(), merges.end());
  for (const auto& pair : merges_of(pieces, MergeOrder::kModel, kWhat)) {
    if (!given.contains(pair)) {
      refuse_tokenizer_export("its merges are not those of a SentencePiece vocabulary: '" +
                              pieces[pair.first].text + "' and '" + pieces[pair.second].text +
                              "' are not joined");
    }
  }
}

}  // namespace

GgufEntries sentencepiece_bpe_entries(const Json& tokenizer, std::vector<Piece>& pieces) {
  const Spaces spaces = read_spaces(tokenizer, false);
  set_types(pieces, spaces, true);
  const Merges merges = read_merges(at(tokenizer, "model", kWhat), pieces);
  set_scores(pieces, merges);
  GgufEntries out;
  out.emplace_back("model", gguf_string("llama"));
  out.emplace_back("pre", gguf_string("default"));
  out.emplace_back("add_space_prefix", gguf_bool(spaces.prefix));
  const bool spelled_apart = std::none_of(pieces.begin(), pieces.end(), [](const Piece& piece) {
    return piece.text.find(' ') != std::string::npos;
  });
  if (spelled_apart && merges_of(pieces, MergeOrder::kGguf, kWhat) != merges) {
    std::vector<std::string> texts;
    for (const auto& [left, right] : merges) texts.push_back(pieces[left].text + " " + pieces[right].text);
    out.emplace_back("merges", gguf_strings(std::move(texts)));
  }
  return out;
}

GgufEntries unigram_entries(const Json& tokenizer, std::vector<Piece>& pieces) {
  const Spaces spaces = read_spaces(tokenizer, true);
  set_types(pieces, spaces, member_or_null(at(tokenizer, "model", kWhat), "byte_fallback") == true);
  GgufEntries out;
  out.emplace_back("model", gguf_string("t5"));
  out.emplace_back("pre", gguf_string("default"));
  out.emplace_back("add_space_prefix", gguf_bool(spaces.prefix));
  out.emplace_back("remove_extra_whitespaces", gguf_bool(spaces.remove_extra));
  if (!spaces.character_map.empty()) {
    std::vector<uint64_t> bytes;
    for (char c : spaces.character_map) bytes.push_back(static_cast<unsigned char>(c));
    out.emplace_back("precompiled_charsmap", GgufValue{GgufType::u8, true, std::move(bytes)});
  }
  return out;
}

GgufEntries word_piece_entries(const Json& tokenizer, std::vector<Piece>& pieces) {
  const Json normalizer = member_or_null(tokenizer, "normalizer");
  const Json pre = member_or_null(tokenizer, "pre_tokenizer");
  if (!normalizer.is_object() || member_or_null(normalizer, "type") != "BertNormalizer" ||
      member_or_null(normalizer, "clean_text") != true ||
      member_or_null(normalizer, "handle_chinese_chars") != true || !pre.is_object() ||
      member_or_null(pre, "type") != "BertPreTokenizer" ||
      member_or_null(at(tokenizer, "model", kWhat), "continuing_subword_prefix") != "##") {
    refuse_tokenizer_export(
        "a WordPiece tokenizer must have BERT's normalizer, pre_tokenizer and prefix \"##\"");
  }
  for (Piece& piece : pieces) {
    if (piece.type != PieceType::kNormal) continue;
    if (!piece.text.starts_with("##")) {
      piece.text = kSpace + piece.text;
      continue;
    }
    piece.text = piece.text.substr(2);
    if (piece.text.starts_with(kSpace) ||
        (piece.text.size() > 2 && piece.text.front() == '[' && piece.text.back() == ']'))
      refuse_tokenizer_export("token '##" + piece.text + "' would look like the beginning of a word");
  }
  const bool lower = member_or_null(normalizer, "lowercase") == true;
  const Json strip = member_or_null(normalizer, "strip_accents");
  GgufEntries out;
  out.emplace_back("model", gguf_string("bert"));
  out.emplace_back("pre", gguf_string("default"));
  out.emplace_back("normalizer.lowercase", gguf_bool(lower));
  out.emplace_back("normalizer.strip_accents", gguf_bool(strip.is_boolean() ? strip.get<bool>() : lower));
  return out;
}

}  // namespace inlaid::formats
