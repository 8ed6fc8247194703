#include "sdk/train/certificate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sdk/base/error.h"
#include "sdk/formats/certificate_place.h"
#include "sdk/train/evaluate.h"
#include "sdk/train/logits.h"

namespace inlaid::train {
namespace {

constexpr int64_t kTokens = 48;           // of the fixed text
constexpr int64_t kHeldOutTokens = 10000;  // of the held-out data

// Prose, digits, code, other scripts, marks that normalisers change, and runs of spaces.
const char* const kTexts[] = {
    "The quick brown fox jumps over the lazy dog. In 1815, about 3.14159 % of them returned; the others did not.",
    "for (int i = 0; i < n; ++i) {\n    sum += values[i] * 2;\n}\n\n\treturn sum;",
    "Größe, naïve, coöperate, façade, Ærøskøbing, ﬁne, Å vs A\u030a.",
    "Съешь ещё этих мягких французских булок, да выпей чаю.",
    "春眠不觉晓，处处闻啼鸟。 すべての人間は、生まれながらにして自由である。 모든 인간은 태어날 때부터 자유로우며",
    "👩‍👩‍👧‍👦 🇩🇪 ½ ∑ ≠ … “quoted” — dash",
    "  two  spaces   three    four ",
    "https://example.org/a/b?c=d&e=f#g  user@example.org",
    "don't WE'LL I'm they've x's 'tis",
    "",
    " ",
    "\n\n",
};

std::vector<Json> conversations() {
  const auto turn = [](const char* role, const char* content) { return Json{{"role", role}, {"content", content}}; };
  return {
      Json::array({turn("user", "What is a lantern?")}),
      Json::array({turn("user", "Hi."), turn("assistant", "Hello!"), turn("user", "  Go on\nplease. ")}),
      Json::array({turn("system", "Be brief."), turn("user", "What is a lantern?"), turn("assistant", "A lamp.")}),
  };
}

// Ids of the fixed text; without a tokenizer, ids that wander through the vocabulary.
data::MicroBatch fixed_batch(const models::Model& model) {
  const int64_t vocabulary = model.config().vocab_size;
  std::vector<int32_t> ids;
  if (model.tokenizer() != nullptr) {
    for (const char* text : kTexts) {
      for (const int32_t id : model.tokenizer()->encode(text, ids.empty()).ids) {
        if (id < vocabulary) ids.push_back(id);  // a tokenizer may know more tokens than the model
      }
    }
  }
  for (int64_t i = static_cast<int64_t>(ids.size()); i < kTokens; ++i) ids.push_back(static_cast<int32_t>(i * 7919 % vocabulary));
  ids.resize(static_cast<size_t>(std::min(kTokens, model.config().max_position_embeddings)));
  data::MicroBatch batch;
  batch.tokens = ids;
  batch.targets.assign(ids.size(), 0);
  batch.row_keys.assign(ids.size(), 0);
  for (size_t i = 0; i < ids.size(); ++i) batch.positions.push_back(static_cast<int32_t>(i));
  batch.cu_seqlens = {0, static_cast<int32_t>(ids.size())};
  return batch;
}

Json compare_logits(const models::Model& model, const std::vector<float>& expected, const std::vector<float>& found) {
  INLAID_CHECK(expected.size() == found.size());
  const auto width = static_cast<size_t>(model.config().vocab_size);
  double difference = 0, largest = 0;
  int64_t same_top = 0;
  for (size_t row = 0; row < expected.size(); row += width) {
    size_t top_expected = row, top_found = row;
    for (size_t i = row; i < row + width; ++i) {
      if (!std::isfinite(found[i])) fail(Code::kInternal, "the exported model's logits are not finite");
      difference = std::max(difference, std::abs(static_cast<double>(expected[i]) - static_cast<double>(found[i])));
      largest = std::max(largest, std::abs(static_cast<double>(found[i])));
      if (expected[i] > expected[top_expected]) top_expected = i;
      if (found[i] > found[top_found]) top_found = i;
    }
    same_top += top_expected == top_found;
  }
  return {{"tokens", expected.size() / width},
          {"max_abs_difference", difference},
          {"max_abs", largest},
          {"same_top_token", same_top}};
}

Json compare_tokenizers(const models::Model& model, const models::Model& exported) {
  if (model.tokenizer() == nullptr) return nullptr;
  if (exported.tokenizer() == nullptr) fail(Code::kInternal, "the export lost the tokenizer");
  for (const char* text : kTexts) {
    for (const bool special : {true, false}) {
      const auto expected = model.tokenizer()->encode(text, special).ids, found = exported.tokenizer()->encode(text, special).ids;
      if (expected != found) {
        fail(Code::kInternal, "the exported tokenizer gives other ids for ", to_text(Json(text)), ": ", to_text(Json(found)),
             " instead of ", to_text(Json(expected)));
      }
    }
  }
  return {{"texts", std::size(kTexts)}, {"equal", true}};
}

// What a template makes of a conversation, or that it refuses it.
std::string render(const text::ChatTemplate& chat_template, const Json& messages) {
  try {
    return chat_template.render(messages, /*add_generation_prompt=*/true, {{"date", "2026-01-02T03:04:05"}});
  } catch (const Error& e) {
    return "refused";
  }
}

Json compare_templates(const models::Model& model, const models::Model& exported) {
  if (model.chat_template() == nullptr) return nullptr;
  if (exported.chat_template() == nullptr) fail(Code::kInternal, "the export lost the chat template");
  int64_t rendered = 0;
  for (const Json& messages : conversations()) {
    const std::string expected = render(*model.chat_template(), messages), found = render(*exported.chat_template(), messages);
    if (expected != found) {
      fail(Code::kInternal, "the exported chat template renders ", to_text(messages), " as ", to_text(Json(found)), " instead of ",
           to_text(Json(expected)));
    }
    rendered += expected != "refused";
  }
  return {{"conversations", rendered}, {"equal", true}};
}

Json compare_losses(const models::Model& model, const models::Adapter* adapter, const models::Model& exported,
                    const data::Dataset* held_out) {
  if (held_out == nullptr) return nullptr;
  const auto loss = [](const LossSums& sums) { return sums.loss / static_cast<double>(sums.target_tokens); };
  const LossSums before = evaluate(model, adapter, *held_out, nullptr, kHeldOutTokens);
  const LossSums after = evaluate(exported, nullptr, *held_out, nullptr, kHeldOutTokens);
  return {{"rows", before.documents},
          {"target_tokens", before.target_tokens},
          {"loss", loss(before)},
          {"loss_exported", loss(after)}};
}

}  // namespace

Json certify_model(const models::Model& model, const models::Adapter* adapter, const std::string& path, const data::Dataset* held_out) {
  models::LoadOptions options;
  options.weights_dtype = "as_stored";
  const std::shared_ptr<models::Model> exported = models::Model::load(model.runtime(), path, options);
  const data::MicroBatch batch = fixed_batch(model);
  Json json;
  json["inlaid_version"] = INLAID_VERSION;
  json["logits"] = compare_logits(model, all_logits(model, adapter, batch), all_logits(*exported, nullptr, batch));
  json["held_out"] = compare_losses(model, adapter, *exported, held_out);
  json["tokenizer"] = compare_tokenizers(model, *exported);
  json["chat_template"] = compare_templates(model, *exported);
  return json;
}

Json certify_adapter(const models::Adapter& adapter, const std::string& folder) {
  const models::Model& base = *adapter.base();
  const std::shared_ptr<models::Adapter> written = models::Adapter::load(adapter.base(), folder);
  const data::MicroBatch batch = fixed_batch(base);
  Json json;
  json["inlaid_version"] = INLAID_VERSION;
  json["logits"] = compare_logits(base, all_logits(base, &adapter, batch), all_logits(base, written.get(), batch));
  return json;
}

Json read_certificate(FileSystem& files, const std::string& path) {
  const std::string text = formats::certificate_text(files, path);
  return parse_json(text, path + ": certificate");
}

}  // namespace inlaid::train
