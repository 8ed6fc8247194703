// tokenizer.ggml.model = "gpt2".
#include <algorithm>

#include "sdk/base/error.h"
#include "sdk/formats/gguf_tokenizer_export.h"
#include "sdk/formats/pre_tokenizers.h"

namespace inlaid::formats {
namespace {

constexpr const char* kWhat = "tokenizer.json";

std::vector<std::string> read_merges(const Json& model) {
  std::vector<std::string> out;
  const Json& merges = at(model, "merges", kWhat);
  if (!merges.is_array()) fail(Code::kInvalidArgument, kWhat, ": key 'model.merges' must be a list");
  out.reserve(merges.size());
  for (const Json& merge : merges) {
    std::string text;
    if (merge.is_string()) {
      text = merge.get<std::string>();
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      text = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
    } else {
      fail(Code::kInvalidArgument, kWhat, ": merge ", out.size(), " must be a text or a pair of texts");
    }
    if (std::count(text.begin(), text.end(), ' ') != 1) {
      refuse_tokenizer_export("merge " + std::to_string(out.size()) + " '" + text +
                              "' has a space inside a token");
    }
    out.push_back(std::move(text));
  }
  return out;
}

PreTokenizer recognise(const Json& tokenizer) {
  const Json& model = at(tokenizer, "model", kWhat);
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const Json value = member_or_null(model, key);
    if (!value.is_null() && value != "") refuse_tokenizer_export(std::string("model.") + key + " is set");
  }
  const Json pre = member_or_null(tokenizer, "pre_tokenizer");
  auto found = pre_tokenizer_like(member_or_null(tokenizer, "normalizer"), pre,
                                  member_or_null(model, "ignore_merges") == true);
  if (!found) {
    refuse_tokenizer_export("its normalizer and pre_tokenizer are none of the known kinds (" +
                            pre_tokenizer_names() + "); pre_tokenizer: " + to_text(pre).substr(0, 200));
  }
  return std::move(*found);
}

}  // namespace

GgufEntries byte_level_entries(const Json& tokenizer) {
  GgufEntries out;
  out.emplace_back("model", gguf_string("gpt2"));
  out.emplace_back("pre", gguf_string(recognise(tokenizer).name));
  out.emplace_back("merges", gguf_strings(read_merges(at(tokenizer, "model", kWhat))));
  out.emplace_back("add_space_prefix", gguf_bool(false));
  return out;
}

}  // namespace inlaid::formats
