// SentencePiece vocabularies as a tokenizer.json: pieces with scores, from a tokenizer.model
// (sentencepiece_model.h) or from GGUF metadata (gguf_tokenizer.h).
//
// Text is normalised by a character map and rules for spaces, every space becomes U+2581, and the result is
// cut into pieces. Unigram takes the cut with the highest sum of scores. BPE joins, again and again, the two
// neighbours whose joined piece has the highest score; tokenizer.json wants the rule spelled out as a list of
// merges, so every way to cut a piece into two others becomes one, in order of score. What no piece covers is
// the unknown piece, or its bytes as pieces "<0xNN>" (byte fallback).
//
// The same result as transformers' conversion (SpmConverter.build_tokenizer_from_spm_proto, and for GGUF
// LlamaTokenizer). It differs from SentencePiece's own in these points: a control piece written in the text
// is that piece; a byte piece written in a Unigram text is that piece; of several Unigram cuts with equal
// scores another one may be taken; the character map sees at most one grapheme at a time.
//
// Cost of the merges: the squares of the lengths of all pieces are bounded, so that a damaged file cannot
// take hours. Tests: tokenizer_ids_test.cc (ids of transformers, sentencepiece and llama.cpp),
// sentencepiece_test.cc.
#ifndef INLAID_SDK_FORMATS_SENTENCEPIECE_H_
#define INLAID_SDK_FORMATS_SENTENCEPIECE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sdk/formats/tokenizer_json.h"

namespace inlaid::formats {

// The numbers of tokenizer.model, which GGUF took over.
enum class PieceType : int64_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

struct Piece {
  std::string text;
  double score = 0;  // of a f32
  PieceType type = PieceType::kNormal;
};

enum class MergeOrder {
  kModel,  // normal pieces only; equal scores by id, then the shortest left part first
  kGguf,   // all pieces; equal scores by length of the left part, the longest first
};
// Merges as pairs of ids, first rank first. kDataLoss naming `what` for pieces that are too long.
using Merges = std::vector<std::pair<uint32_t, uint32_t>>;
Merges merges_of(const std::vector<Piece>& pieces, MergeOrder order, std::string_view what);

struct SentencePiece {
  enum class Model { kBpe, kUnigram };
  // Where a space is put in front: nowhere, at the start of the whole text only, or at the start of every
  // stretch between special tokens; the last also before a space that is already there.
  enum class Prefix { kNone, kFirst, kAlways };

  Model model = Model::kBpe;
  std::vector<Piece> pieces;
  std::optional<size_t> unknown;  // id; needed for Unigram
  bool byte_fallback = false;
  std::string character_map;  // "precompiled_charsmap"; "" for none
  bool remove_extra_spaces = false;
  Prefix prefix = Prefix::kAlways;
  // User-defined pieces: as added tokens, which end a stretch, or split off inside of one, as SentencePiece
  // does.
  bool user_defined_added = false;
  MergeOrder order = MergeOrder::kModel;
  std::optional<std::vector<std::string>> merges;  // "left right", where the file lists them
};

// Checks `model` and gives the parts of its tokenizer.json, all but the post-processor; control and unknown
// pieces are special added tokens. kDataLoss naming `what` and the piece for vocabularies that contradict
// themselves.
TokenizerParts sentencepiece_parts(const SentencePiece& model, std::string_view what);

// "<0x00>" to "<0xFF>".
bool is_byte_piece(std::string_view text);
std::string base64(std::string_view bytes);

}  // namespace inlaid::formats

#endif  // INLAID_SDK_FORMATS_SENTENCEPIECE_H_
