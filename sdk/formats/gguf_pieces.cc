// tokenizer.ggml.model = "llama", "t5" and "bert".
#include <algorithm>
#include <unordered_map>

#include "sdk/base/error.h"
#include "sdk/formats/gguf_tokenizer_kinds.h"

namespace inlaid::formats {
namespace {

std::optional<size_t> unknown_of(const GgufVocabulary& vocabulary) {
  const auto id = vocabulary.special_id("unknown");
  if (!id) return {};
  if (static_cast<size_t>(*id) >= vocabulary.size()) {
    fail(Code::kDataLoss, vocabulary.file().path(), ": tokenizer.ggml.unknown_token_id is ", *id,
         ", a padding token");
  }
  return static_cast<size_t>(*id);
}

bool has_all_bytes(const std::vector<Piece>& pieces) {
  std::vector<bool> seen(256);
  for (const Piece& piece : pieces) {
    if (is_byte_piece(piece.text))
      seen[static_cast<size_t>(std::stoi(piece.text.substr(3, 2), nullptr, 16))] = true;
  }
  return std::all_of(seen.begin(), seen.end(), [](bool there) { return there; });
}

// Gemma's files say nothing about merges in their scores: tokens stand in the order of the merges. Tokens of
// two or more spaces are written with plain spaces.
void gemma(SentencePiece& model) {
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    Piece& piece = model.pieces[id];
    piece.score = -static_cast<double>(id);
    if (piece.text.size() < 2 || piece.text.find_first_not_of(' ') != std::string::npos) continue;
    std::string spelled;
    for (size_t i = 0; i < piece.text.size(); ++i) spelled += kSpace;
    piece.text = std::move(spelled);
  }
}

}  // namespace

TokenizerParts sentencepiece_bpe_parts(const GgufVocabulary& vocabulary) {
  const GgufFile& file = vocabulary.file();
  const std::string architecture = file.optional_text("general.architecture").value_or("");
  SentencePiece model;
  model.pieces = vocabulary.pieces();
  model.unknown = unknown_of(vocabulary);
  model.byte_fallback = has_all_bytes(model.pieces);
  model.user_defined_added = true;
  model.order = MergeOrder::kGguf;
  model.prefix = vocabulary.flag("add_space_prefix", true) ? SentencePiece::Prefix::kFirst
                                                           : SentencePiece::Prefix::kNone;
  if (file.find(gguf_tokenizer_key("merges")) != nullptr)
    model.merges = file.texts(gguf_tokenizer_key("merges"));
  if (architecture.starts_with("gemma")) gemma(model);
  // Phi-3's own tokenizer.json differs in this from what transformers makes of other files of this kind.
  if (architecture == "phi3" && model.prefix == SentencePiece::Prefix::kFirst)
    model.prefix = SentencePiece::Prefix::kAlways;
  return sentencepiece_parts(model, file.path());
}

TokenizerParts unigram_parts(const GgufVocabulary& vocabulary) {
  const GgufFile& file = vocabulary.file();
  if (vocabulary.flag("treat_whitespace_as_suffix", false)) {
    fail(Code::kUnimplemented, file.path(), ": tokenizer.ggml.treat_whitespace_as_suffix is not supported");
  }
  SentencePiece model;
  model.model = SentencePiece::Model::kUnigram;
  model.pieces = vocabulary.pieces();
  model.unknown = unknown_of(vocabulary);
  model.byte_fallback = has_all_bytes(model.pieces);
  model.user_defined_added = true;
  model.remove_extra_spaces = vocabulary.flag("remove_extra_whitespaces", false);
  model.prefix = vocabulary.flag("add_space_prefix", true) ? SentencePiece::Prefix::kAlways
                                                           : SentencePiece::Prefix::kNone;
  if (file.find(gguf_tokenizer_key("precompiled_charsmap")) != nullptr) {
    for (int64_t byte : file.integers(gguf_tokenizer_key("precompiled_charsmap"))) {
      if (byte < -128 || byte > 255) {
        fail(Code::kDataLoss, file.path(), ": tokenizer.ggml.precompiled_charsmap must be an array of bytes");
      }
      model.character_map += static_cast<char>(byte);
    }
  }
  TokenizerParts out = sentencepiece_parts(model, file.path());
  if (model.remove_extra_spaces && model.prefix == SentencePiece::Prefix::kAlways && !model.byte_fallback) {
    // T5's own way, the same but for white space that the character map leaves: words are split at all of it.
    out.normalizer = model.character_map.empty() ? Json() : Json(out.normalizer["normalizers"][0]);
    out.pre_tokenizer =
        sequence_of("pretokenizers", {Json{{"type", "WhitespaceSplit"}}, metaspace("always", true)});
    out.decoder = metaspace("always", true);
  }
  return out;
}

TokenizerParts word_piece_parts(const GgufVocabulary& vocabulary) {
  const GgufFile& file = vocabulary.file();
  const auto unknown = vocabulary.special("unknown");
  if (!unknown) {
    fail(Code::kDataLoss, file.path(), ": tokenizer.ggml.unknown_token_id is missing, which WordPiece needs");
  }
  TokenizerParts out;
  std::unordered_map<std::string, size_t> ids;
  std::string vocab;
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    const std::string text = vocabulary.plain_text(id);
    if (const auto [at, fresh] = ids.emplace(text, id); !fresh) {
      fail(Code::kDataLoss, file.path(), ": tokens ", at->second, " and ", id, " have the same text '", text,
           "'");
    }
    if (id > 0) vocab += ',';
    vocab += quoted_token(text, id, file.path());
    vocab += ':';
    vocab += std::to_string(id);
    if (vocabulary.is_added(id)) out.added.push_back({id, text, vocabulary.is_special(id)});
  }
  const bool lower = vocabulary.flag("normalizer.lowercase", true);
  out.normalizer = Json{{"type", "BertNormalizer"},
                        {"clean_text", true},
                        {"handle_chinese_chars", true},
                        {"strip_accents", vocabulary.flag("normalizer.strip_accents", lower)},
                        {"lowercase", lower}};
  out.pre_tokenizer = Json{{"type", "BertPreTokenizer"}};
  out.decoder = Json{{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  out.model = R"({"type":"WordPiece","unk_token":)" + to_text(Json(unknown->text)) +
              R"(,"continuing_subword_prefix":"##","max_input_chars_per_word":100,"vocab":{)" + vocab + "}}";
  return out;
}

}  // namespace inlaid::formats
