#include "sdk/formats/sentencepiece_model.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <map>
#include <set>

#include "inlaid/formats/v1/sentencepiece_model.pb.h"
#include "sdk/base/error.h"
#include "sdk/formats/sentencepiece.h"

namespace inlaid::formats {
namespace {

constexpr size_t kMaxBytes = size_t{256} << 20;
// An empty piece takes two bytes of the file and some hundred of memory. Published models have up to 256,000
// pieces.
constexpr size_t kMaxPieces = size_t{1} << 21;
constexpr int kMaxDepth = 16;
constexpr uint32_t kPieceTag = 1 << 3 | 2;

// Classes of transformers whose ids are not the numbers of the pieces, or that normalise in a way of their
// own.
constexpr std::string_view kOwnWays[] = {
    "Albert",    "BarthezTok", "BigBird", "Camembert",   "DebertaV2", "FNet",    "Layoutxlm",
    "LayoutXLM", "MBart",      "M2M100",  "Marian",      "NllbTok",   "Pegasus", "Plbart",
    "PLBart",    "Reformer",   "RemBert", "SeamlessM4T", "Speech2",   "T5Tok",   "UdopTok",
    "XGLM",      "XLMRoberta", "XLNet",   "Helium",      "Moshi"};

[[noreturn]] void damaged(const std::string& path) {
  fail(Code::kDataLoss, path, ": this is no SentencePiece model, or it is damaged");
}

// Lines of base64 and a number, the format of tiktoken: other models keep that under the same name.
bool is_tiktoken(std::string_view bytes) {
  const std::string_view line = bytes.substr(0, bytes.substr(0, 4096).find('\n'));
  const size_t space = line.find(' ');
  if (space == line.npos || space == 0 || space + 1 == line.size()) return false;
  const auto all = [](std::string_view text, auto test) {
    return std::all_of(text.begin(), text.end(), test);
  };
  return all(line.substr(0, space),
             [](char c) {
               return std::isalnum(static_cast<unsigned char>(c)) || c == '+' || c == '/' || c == '=';
             }) &&
         all(line.substr(space + 1), [](char c) { return c >= '0' && c <= '9'; });
}

v1::SentencePieceModel parse(std::string_view bytes, const std::string& path) {
  if (bytes.size() > kMaxBytes) {
    fail(Code::kDataLoss, path, ": a SentencePiece model of ", bytes.size(), " bytes is over the limit of ",
         kMaxBytes);
  }
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  google::protobuf::io::CodedInputStream scan(data, static_cast<int>(bytes.size()));
  size_t count = 0;
  while (const uint32_t tag = scan.ReadTag()) {
    if (!google::protobuf::internal::WireFormatLite::SkipField(&scan, tag)) damaged(path);
    if (tag == kPieceTag && ++count > kMaxPieces) {
      fail(Code::kDataLoss, path, ": more than ", kMaxPieces, " pieces");
    }
  }
  google::protobuf::io::CodedInputStream stream(data, static_cast<int>(bytes.size()));
  stream.SetRecursionLimit(kMaxDepth);
  v1::SentencePieceModel model;
  if (!model.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage() || model.pieces_size() == 0) {
    damaged(path);
  }
  return model;
}

void refuse_what_is_not_supported(const v1::SentencePieceModel& file, const std::string& path,
                                  const Json& config) {
  const auto refuse = [&](const std::string& what) {
    fail(Code::kUnimplemented, path, ": ", what, "; give a tokenizer.json made by the model's own library");
  };
  const v1::SentencePieceTrainerSpec& trainer = file.trainer_spec();
  if (trainer.model_type() != 1 && trainer.model_type() != 2) {
    const char* kind = trainer.model_type() == 3   ? " (words)"
                       : trainer.model_type() == 4 ? " (characters)"
                                                   : "";
    refuse("model_type " + std::to_string(trainer.model_type()) + kind +
           " is not supported; supported are 1 (Unigram) and 2 (BPE)");
  }
  if (trainer.treat_whitespace_as_suffix()) refuse("treat_whitespace_as_suffix is not supported");
  if (!file.normalizer_spec().escape_whitespaces()) refuse("escape_whitespaces = false is not supported");
  if (!file.denormalizer_spec().precompiled_charsmap().empty()) refuse("a denormalizer is not supported");
  const auto named = config.find("tokenizer_class");
  if (named == config.end() || !named->is_string()) return;
  for (std::string_view own : kOwnWays) {
    if (named->get<std::string>().starts_with(own)) {
      refuse("tokenizer_class '" + named->get<std::string>() + "' changes the ids of the pieces");
    }
  }
}

std::vector<Piece> pieces_of(const v1::SentencePieceModel& file, const std::string& path) {
  std::vector<Piece> out;
  out.reserve(static_cast<size_t>(file.pieces_size()));
  for (const v1::SentencePieceModel::Piece& piece : file.pieces()) {
    if (piece.piece().empty()) fail(Code::kDataLoss, path, ": piece ", out.size(), " is empty");
    if (piece.type() < 1 || piece.type() > 6) {
      fail(Code::kDataLoss, path, ": piece ", out.size(), " '", piece.piece(), "' has the unknown type ",
           piece.type());
    }
    out.push_back({piece.piece(), double{piece.score()}, static_cast<PieceType>(piece.type())});
  }
  return out;
}

struct Addition {
  std::string content;
  bool special;
};

// Tokens by id of added_tokens_decoder and added_tokens.json.
std::map<size_t, Addition> additions_of(const Json& config, const Json& added_tokens,
                                        const std::string& path) {
  std::map<size_t, Addition> out;
  if (const auto decoder = config.find("added_tokens_decoder");
      decoder != config.end() && decoder->is_object()) {
    for (const auto& [id, token] : decoder->items()) {
      if (id.empty() || id.size() > 8 ||
          !std::all_of(id.begin(), id.end(), [](char c) { return c >= '0' && c <= '9'; }) ||
          !token.is_object() || !token.contains("content") || !token["content"].is_string()) {
        fail(Code::kDataLoss, path, ": entry '", id,
             "' of added_tokens_decoder in tokenizer_config.json is no token");
      }
      const bool special = token.contains("special") && token["special"] == true;
      for (const char* flag : {"lstrip", "rstrip", "single_word"}) {
        if (token.contains(flag) && token[flag] == true) {
          fail(Code::kUnimplemented, path, ": added token '", token["content"].get<std::string>(), "' has ",
               flag, " set, which is not supported for a tokenizer.model; give a tokenizer.json");
        }
      }
      out[std::stoul(id)] = {token["content"].get<std::string>(), special};
    }
  }
  std::set<std::string> specials;
  for (const Json& value : config) {
    if (value.is_string()) specials.insert(value.get<std::string>());
  }
  for (const auto& [text, id] : added_tokens.items()) {
    if (!id.is_number_integer() || id < 0 || id > 99'999'999) {
      fail(Code::kDataLoss, path, ": the id of '", text, "' in added_tokens.json is no id");
    }
    out.try_emplace(id.get<size_t>(), Addition{text, specials.contains(text)});
  }
  return out;
}

bool flag(const Json& config, const char* key, bool otherwise) {
  const auto found = config.find(key);
  return found != config.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

bool is_llama_class(const Json& config) {
  const auto found = config.find("tokenizer_class");
  return found != config.end() && found->is_string() && found->get<std::string>().starts_with("Llama");
}

// The special tokens that the model file names, where the configuration does not.
void name_special_tokens(const v1::SentencePieceModel& file, Json& config) {
  const v1::SentencePieceTrainerSpec& trainer = file.trainer_spec();
  const auto name = [&](const char* key, int32_t id, const std::string& piece) {
    const bool absent = !config.contains(key) || config[key].is_null();
    if (id >= 0 && id < file.pieces_size() && absent) config[key] = piece;
  };
  name("bos_token", trainer.bos_id(), trainer.bos_piece());
  name("eos_token", trainer.eos_id(), trainer.eos_piece());
  name("unk_token", trainer.unk_id(), trainer.unk_piece());
}

// Adds tokens behind the pieces, and marks pieces that are named again as added.
void add_tokens(TokenizerParts& parts, const std::map<size_t, Addition>& additions, size_t pieces,
                const std::string& path) {
  std::map<size_t, AddedToken> by_id;
  for (AddedToken& token : parts.added) by_id.emplace(token.id, std::move(token));
  size_t next = pieces;
  for (const auto& [id, token] : additions) {
    if (id >= pieces && id != next++) {
      fail(Code::kUnimplemented, path, ": added token '", token.content, "' has id ", id,
           ", the next free one is ", next - 1, "; gaps are not supported; give a tokenizer.json");
    }
    AddedToken& there = by_id.try_emplace(id, AddedToken{id, token.content, false}).first->second;
    there.special = there.special || token.special;
  }
  parts.added.clear();
  for (auto& [id, token] : by_id) parts.added.push_back(std::move(token));
}

std::optional<SpecialToken> special_token(const Json& config, const char* key, const TokenizerParts& parts,
                                          const std::string& path) {
  const auto named = config.find(key);
  if (named == config.end() || !named->is_string()) return {};
  for (const AddedToken& token : parts.added) {
    if (token.content == named->get<std::string>())
      return SpecialToken{token.content, static_cast<int64_t>(token.id)};
  }
  fail(Code::kDataLoss, path, ": ", key, " '", named->get<std::string>(),
       "' of tokenizer_config.json is to be added to texts, but is no special token");
}

}  // namespace

std::string sentencepiece_tokenizer_json(std::string_view bytes, const std::string& path, Json& config,
                                         const Json& added_tokens) {
  if (is_tiktoken(bytes)) {
    fail(Code::kUnimplemented, path,
         ": a vocabulary in tiktoken's format does not say how text is split; give the model's "
         "tokenizer.json");
  }
  const v1::SentencePieceModel file = parse(bytes, path);
  refuse_what_is_not_supported(file, path, config);
  const v1::SentencePieceTrainerSpec& trainer = file.trainer_spec();
  const v1::SentencePieceNormalizerSpec& normalizer = file.normalizer_spec();
  const std::map<size_t, Addition> additions = additions_of(config, added_tokens, path);

  SentencePiece model;
  model.pieces = pieces_of(file, path);
  for (const auto& [id, token] : additions) {
    if (id < model.pieces.size()) model.pieces[id].text = token.content;
  }
  model.model = trainer.model_type() == 2 ? SentencePiece::Model::kBpe : SentencePiece::Model::kUnigram;
  if (trainer.unk_id() >= 0) model.unknown = static_cast<size_t>(trainer.unk_id());
  model.byte_fallback = trainer.byte_fallback();
  model.character_map = normalizer.precompiled_charsmap();
  model.remove_extra_spaces = normalizer.remove_extra_whitespaces();
  model.prefix = !normalizer.add_dummy_prefix()                    ? SentencePiece::Prefix::kNone
                 : flag(config, "legacy", !is_llama_class(config)) ? SentencePiece::Prefix::kAlways
                                                                   : SentencePiece::Prefix::kFirst;
  model.user_defined_added = is_llama_class(config);
  TokenizerParts parts = sentencepiece_parts(model, path);
  add_tokens(parts, additions, model.pieces.size(), path);
  name_special_tokens(file, config);
  const bool bos = flag(config, "add_bos_token", false), eos = flag(config, "add_eos_token", false);
  parts.post_processor =
      surrounding_tokens(bos ? special_token(config, "bos_token", parts, path) : std::nullopt,
                         eos ? special_token(config, "eos_token", parts, path) : std::nullopt);
  return tokenizer_json_text(parts);
}

}  // namespace inlaid::formats
