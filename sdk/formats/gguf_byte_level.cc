// tokenizer.ggml.model = "gpt2".
#include <unordered_map>

#include "sdk/base/error.h"
#include "sdk/formats/gguf_tokenizer_kinds.h"

namespace inlaid::formats {
namespace {

// "vocab" and "merges" of the model as text: built by hand, since they have about 100,000 entries.
std::string model_json(const GgufVocabulary& vocabulary, bool ignore_merges) {
  const GgufFile& file = vocabulary.file();
  std::unordered_map<std::string_view, size_t> ids;
  ids.reserve(vocabulary.size());
  std::string out =
      R"({"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,)"
      R"("fuse_unk":false,"byte_fallback":false,"ignore_merges":)";
  out += ignore_merges ? "true" : "false";
  out += ",\"vocab\":{";
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    const std::string& text = vocabulary.text(id);
    if (!ids.emplace(text, id).second) {
      fail(Code::kDataLoss, file.path(), ": tokens ", ids[text], " and ", id, " have the same text '", text,
           "'");
    }
    if (id > 0) out += ',';
    out += quoted_token(text, id, file.path());
    out += ':';
    out += std::to_string(id);
  }
  out += "},\"merges\":[";
  const std::vector<std::string>& merges = file.texts(gguf_tokenizer_key("merges"));
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
    out += to_text(Json(merge));
  }
  return out + "]}";
}

}  // namespace

PreTokenizer gguf_pre_tokenizer(const GgufFile& file) {
  const auto pre = file.optional_text(gguf_tokenizer_key("pre"));
  if (!pre) {
    fail(Code::kUnimplemented, file.path(),
         ": tokenizer.ggml.pre is missing, so that it is unknown how text is split; give the model's "
         "tokenizer.json "
         "as model.tokenizer");
  }
  if (auto found = pre_tokenizer_named(*pre)) return std::move(*found);
  const std::string reason = pre_tokenizer_refusal(*pre);
  fail(Code::kUnimplemented, file.path(), ": tokenizer.ggml.pre '", *pre, "' is not supported",
       reason.empty() ? "" : " (" + reason + ")",
       "; give the model's tokenizer.json as model.tokenizer. Supported are ", pre_tokenizer_names());
}

TokenizerParts byte_level_parts(const GgufVocabulary& vocabulary) {
  const PreTokenizer pre = gguf_pre_tokenizer(vocabulary.file());
  TokenizerParts out;
  out.model = model_json(vocabulary, pre.ignore_merges);  // checks the texts of all tokens
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.is_added(id)) out.added.push_back({id, vocabulary.text(id), vocabulary.is_special(id)});
  }
  out.normalizer = pre.normalizer;
  out.pre_tokenizer = pre.pre_tokenizer;
  out.decoder =
      Json{{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}};
  return out;
}

}  // namespace inlaid::formats
