#include "sdk/formats/sentencepiece.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "sdk/base/error.h"

namespace inlaid::formats {
namespace {

// Each is an alternative of one regular expression. Published models have under 500.
constexpr size_t kMaxUserDefined = 10'000;

using Ids = std::unordered_map<std::string_view, uint32_t>;

Ids ids_of(const std::vector<Piece>& pieces, std::string_view what) {
  Ids ids;
  ids.reserve(pieces.size());
  for (size_t id = 0; id < pieces.size(); ++id) {
    const auto [at, fresh] = ids.emplace(pieces[id].text, static_cast<uint32_t>(id));
    if (!fresh) {
      fail(Code::kDataLoss, what, ": tokens ", at->second, " and ", id, " have the same text '", at->first,
           "'");
    }
    if (!std::isfinite(pieces[id].score)) {
      fail(Code::kDataLoss, what, ": the score of token ", id, " '", pieces[id].text,
           "' is not a finite number");
    }
  }
  return ids;
}

std::string vocabulary_text(const std::vector<Piece>& pieces, bool scores, std::string_view what) {
  std::string out;
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (id > 0) out += ',';
    if (scores) out += '[';
    out += quoted_token(pieces[id].text, id, what);
    out += scores ? ',' : ':';
    out += scores ? to_text(Json(pieces[id].score)) : std::to_string(id);
    if (scores) out += ']';
  }
  return out;
}

Merges listed_merges(const std::vector<std::string>& list, const Ids& ids, std::string_view what) {
  Merges out;
  out.reserve(list.size());
  for (const std::string& merge : list) {
    const size_t space = merge.find(' ', 1);
    const auto id_at = [&](size_t begin, size_t count) {
      return ids.find(std::string_view(merge).substr(begin, count));
    };
    if (space != std::string::npos) {
      const auto left = id_at(0, space), right = id_at(space + 1, std::string::npos);
      if (left != ids.end() && right != ids.end() &&
          ids.contains(std::string(left->first) + std::string(right->first))) {
        out.emplace_back(left->second, right->second);
        continue;
      }
    }
    fail(Code::kDataLoss, what, ": merge ", out.size(), " '", merge,
         "' is not two tokens, separated by one space, whose joined text is a token as well");
  }
  return out;
}

std::string bpe_text(const SentencePiece& model, const Ids& ids, bool ignore_merges, std::string_view what) {
  const std::vector<Piece>& pieces = model.pieces;
  std::string out = R"({"type":"BPE","dropout":null,"unk_token":)";
  out += model.unknown ? quoted_token(pieces[*model.unknown].text, *model.unknown, what) : "null";
  out += R"(,"continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":true,"byte_fallback":)";
  out += model.byte_fallback ? "true" : "false";
  out += ignore_merges ? ",\"ignore_merges\":true" : ",\"ignore_merges\":false";
  out += ",\"vocab\":{";
  out += vocabulary_text(pieces, false, what);
  out += "},\"merges\":[";
  const Merges merges =
      model.merges ? listed_merges(*model.merges, ids, what) : merges_of(pieces, model.order, what);
  bool first = true;
  for (const auto& [left, right] : merges) {
    if (!first) out += ',';
    first = false;
    out += '[';
    out += to_text(Json(pieces[left].text));
    out += ',';
    out += to_text(Json(pieces[right].text));
    out += ']';
  }
  return out + "]}";
}

std::string unigram_text(const SentencePiece& model, std::string_view what) {
  if (!model.unknown)
    fail(Code::kDataLoss, what, ": a Unigram vocabulary needs an unknown token, there is none");
  std::string out = R"({"type":"Unigram","unk_id":)" + std::to_string(*model.unknown);
  out += ",\"vocab\":[";
  out += vocabulary_text(model.pieces, true, what);
  out += model.byte_fallback ? "],\"byte_fallback\":true}" : "],\"byte_fallback\":false}";
  return out;
}

Json normalizer_of(const SentencePiece& model) {
  std::vector<Json> parts;
  if (!model.character_map.empty()) {
    Json map = Json::object();
    map["type"] = "Precompiled";
    map["precompiled_charsmap"] = base64(model.character_map);
    parts.push_back(std::move(map));
  }
  if (model.remove_extra_spaces) {  // spaces only: other white space is left alone
    parts.push_back(replace_regex(R"(\A +| +\z)", ""));
    parts.push_back(replace_regex(" {2,}", " "));
  }
  parts.push_back(replace_text(" ", kSpace));
  if (model.prefix == SentencePiece::Prefix::kAlways) {
    // Metaspace puts no prefix before a U+2581 that is already there, SentencePiece does.
    parts.push_back(replace_regex("\\A\u2581", "\u2581\u2581"));
  }
  return sequence_of("normalizers", std::move(parts));
}

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (std::string_view(R"(\.^$|?*+()[]{}-&~#)").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

Json pre_tokenizer_of(const SentencePiece& model, std::vector<std::string> user_defined) {
  std::vector<Json> parts;
  if (model.prefix != SentencePiece::Prefix::kNone) {
    parts.push_back(metaspace(model.prefix == SentencePiece::Prefix::kFirst ? "first" : "always", false));
  }
  if (!user_defined.empty()) {
    std::stable_sort(user_defined.begin(), user_defined.end(),
                     [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
    std::string pattern;
    for (const std::string& text : user_defined) {
      if (!pattern.empty()) pattern += '|';
      pattern += escaped(text);
    }
    parts.push_back(split_at(Json{{"Regex", pattern}}, "Isolated"));
  }
  return sequence_of("pretokenizers", std::move(parts));
}

}  // namespace

bool is_byte_piece(std::string_view text) {
  const auto digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); };
  return text.size() == 6 && text.starts_with("<0x") && digit(text[3]) && digit(text[4]) && text[5] == '>';
}

std::string base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const auto byte = [&](size_t i) {
      return at + i < bytes.size() ? uint32_t{static_cast<unsigned char>(bytes[at + i])} : 0u;
    };
    const uint32_t group = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (size_t i = 0; i < 4; ++i) {
      out += i <= bytes.size() - at ? kDigits[group >> (18 - 6 * i) & 63] : '=';
    }
  }
  return out;
}

TokenizerParts sentencepiece_parts(const SentencePiece& model, std::string_view what) {
  if (model.pieces.empty()) fail(Code::kDataLoss, what, ": the vocabulary has no tokens");
  const Ids ids = ids_of(model.pieces, what);
  if (model.unknown && *model.unknown >= model.pieces.size()) {
    fail(Code::kDataLoss, what, ": the unknown token is number ", *model.unknown, ", there are ",
         model.pieces.size(), " tokens");
  }
  TokenizerParts out;
  std::vector<std::string> user_defined;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const Piece& piece = model.pieces[id];
    if (piece.text.empty()) continue;
    const bool special =
        piece.type == PieceType::kControl || piece.type == PieceType::kUnknown || id == model.unknown;
    if (special || (piece.type == PieceType::kUserDefined && model.user_defined_added)) {
      out.added.push_back({id, piece.text, special});
    } else if (piece.type == PieceType::kUserDefined) {
      user_defined.push_back(piece.text);
    }
  }
  if (user_defined.size() > kMaxUserDefined) {
    fail(Code::kUnimplemented, what, ": ", user_defined.size(),
         " user-defined pieces are not supported; at most ", kMaxUserDefined, " are");
  }
  const bool ignore_merges = !user_defined.empty();
  out.model = model.model == SentencePiece::Model::kBpe ? bpe_text(model, ids, ignore_merges, what)
                                                        : unigram_text(model, what);
  out.normalizer = normalizer_of(model);
  out.pre_tokenizer = pre_tokenizer_of(model, std::move(user_defined));
  out.decoder = piece_decoder(model.byte_fallback, model.prefix != SentencePiece::Prefix::kNone);
  return out;
}

}  // namespace inlaid::formats
