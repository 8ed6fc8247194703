#include "sdk/formats/gguf_tokenizer.h"

#include <algorithm>

#include "sdk/base/error.h"
#include "sdk/formats/gguf_tokenizer_kinds.h"
#include "sdk/formats/json_vocabulary.h"

namespace inlaid::formats {
namespace {

constexpr std::string_view kOwnJson = "tokenizer.huggingface.json";

struct Around {
  bool bos = false, eos = false, separator = false;
};

Around added_around(const GgufVocabulary& vocabulary) {
  Around out;
  switch (vocabulary.kind()) {
    case GgufTokenizerKind::kByteLevel:
      // A pre-tokenizer that is not known has its say where it is needed (gguf_pre_tokenizer).
      if (const auto pre =
              pre_tokenizer_named(vocabulary.file().optional_text(gguf_tokenizer_key("pre")).value_or(""))) {
        out.bos = pre->adds_bos;
      }
      break;
    case GgufTokenizerKind::kSentencePieceBpe:
      out.bos = true;
      break;
    case GgufTokenizerKind::kUnigram:
      out.eos = true;
      break;
    case GgufTokenizerKind::kWordPiece:
      out.bos = out.separator = true;
      break;
    case GgufTokenizerKind::kOther:
      break;
  }
  out.bos = vocabulary.flag("add_bos_token", out.bos);
  out.eos = vocabulary.flag("add_eos_token", out.eos);
  out.separator = out.separator && vocabulary.flag("add_sep_token", true);
  return out;
}

// Puts BOS in front and EOS behind, where the file says so; for BERT [CLS] and [SEP].
Json post_processor(const GgufVocabulary& vocabulary) {
  const Around around = added_around(vocabulary);
  const auto token = [&](bool wanted, const char* name) -> std::optional<SpecialToken> {
    if (!wanted) return {};
    auto found = vocabulary.special(name);
    if (!found) {
      fail(Code::kDataLoss, vocabulary.file().path(), ": ", gguf_tokenizer_key(name),
           "_token_id is missing, but the token is to be added");
    }
    return found;
  };
  return surrounding_tokens(token(around.bos, "bos"),
                            around.separator ? token(true, "seperator") : token(around.eos, "eos"),
                            around.separator);
}

TokenizerParts parts_of(const GgufVocabulary& vocabulary) {
  switch (vocabulary.kind()) {
    case GgufTokenizerKind::kByteLevel:
      return byte_level_parts(vocabulary);
    case GgufTokenizerKind::kSentencePieceBpe:
      return sentencepiece_bpe_parts(vocabulary);
    case GgufTokenizerKind::kUnigram:
      return unigram_parts(vocabulary);
    case GgufTokenizerKind::kWordPiece:
      return word_piece_parts(vocabulary);
    case GgufTokenizerKind::kOther:
      break;
  }
  const GgufFile& file = vocabulary.file();
  fail(Code::kUnimplemented, file.path(), ": tokenizer.ggml.model '", file.text(gguf_tokenizer_key("model")),
       "' is not supported; supported are gpt2 (byte-level BPE), llama (SentencePiece BPE), t5 (Unigram) and "
       "bert "
       "(WordPiece); give the model's tokenizer.json as model.tokenizer");
}

// The tokenizer.json that the file carries, once its tokens are those of the file.
std::string carried_json(const GgufVocabulary& vocabulary, std::string text) {
  const std::string what = vocabulary.file().path() + ": " + std::string(kOwnJson);
  const JsonVocabulary own = json_vocabulary(parse_json(text, what), what);
  for (size_t id = 0; id < own.tokens.size(); ++id) {
    if (!own.tokens[id]) continue;
    const std::string there = id < vocabulary.size() ? vocabulary.plain_text(id) : "";
    if (*own.tokens[id] != there) {
      fail(Code::kDataLoss, what, ": token ", id, " is '", *own.tokens[id],
           "', in tokenizer.ggml.tokens it is '", there, "'");
    }
  }
  return text;
}

}  // namespace

bool has_gguf_tokenizer(const GgufFile& file) {
  return file.find(gguf_tokenizer_key("model")) != nullptr;
}

std::string gguf_tokenizer_json(const GgufFile& file) {
  const GgufVocabulary vocabulary(file);
  if (auto own = file.optional_text(kOwnJson); own && !own->empty())
    return carried_json(vocabulary, std::move(*own));
  TokenizerParts parts = parts_of(vocabulary);
  parts.post_processor = post_processor(vocabulary);
  return tokenizer_json_text(parts);
}

Json gguf_tokenizer_config(const GgufFile& file) {
  const GgufVocabulary vocabulary(file);
  const Around around = added_around(vocabulary);
  Json out = Json::object();
  out["tokenizer_class"] = "PreTrainedTokenizerFast";
  out["add_bos_token"] = around.bos;
  out["add_eos_token"] = around.eos;
  constexpr std::pair<const char*, const char*> kSpecial[] = {
      {"bos_token", "bos"}, {"eos_token", "eos"}, {"unk_token", "unknown"}, {"pad_token", "padding"}};
  constexpr std::pair<const char*, const char*> kBert[] = {
      {"cls_token", "bos"}, {"sep_token", "seperator"}, {"mask_token", "mask"}};
  const auto name = [&](const char* key, const char* special) {
    if (const auto token = vocabulary.special(special)) out[key] = token->text;
  };
  for (const auto& [key, special] : kSpecial) name(key, special);
  if (vocabulary.kind() == GgufTokenizerKind::kWordPiece) {
    for (const auto& [key, special] : kBert) name(key, special);
  }
  const std::string architecture = file.optional_text("general.architecture").value_or("llama");
  if (const auto context = file.optional_integer(architecture + ".context_length"))
    out["model_max_length"] = *context;
  out["clean_up_tokenization_spaces"] = false;
  Json& added = out["added_tokens_decoder"] = Json::object();
  std::vector<Json::object_t::value_type>& entries = added.get_ref<Json::object_t&>();
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    if (!vocabulary.is_added(id)) continue;
    Json entry = Json::object();
    entry["content"] = vocabulary.text(id);
    for (const char* flag : {"lstrip", "normalized", "rstrip", "single_word"}) entry[flag] = false;
    entry["special"] = vocabulary.is_special(id);
    entries.emplace_back(std::to_string(id),
                         std::move(entry));  // ids are distinct: no search for an equal key
  }
  return out;
}

Json gguf_generation_config(const GgufFile& file) {
  const GgufVocabulary vocabulary(file);
  Json out = Json::object();
  if (const auto id = vocabulary.special_id("bos")) out["bos_token_id"] = *id;
  std::vector<int64_t> ends;
  for (const char* name : {"eos", "eot", "eom"}) {
    const auto id = vocabulary.special_id(name);
    if (id && std::find(ends.begin(), ends.end(), *id) == ends.end()) ends.push_back(*id);
  }
  if (ends.size() == 1) out["eos_token_id"] = ends[0];
  if (ends.size() > 1) out["eos_token_id"] = ends;
  if (const auto id = vocabulary.special_id("padding")) out["pad_token_id"] = *id;
  return out;
}

}  // namespace inlaid::formats
