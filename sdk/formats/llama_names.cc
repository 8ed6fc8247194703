#include "sdk/formats/llama_names.h"

namespace inlaid::formats {
namespace {

enum class Presence { kAlways, kUnlessTied, kAttentionBias, kOutputBias, kMlpBias, kQkNorm };

struct Row {
  std::string_view gguf;
  std::string_view hugging_face;
  RowOrder rows;
  Presence presence;
};

constexpr Row kTable[] = {
    {"token_embd.weight", "model.embed_tokens.weight", RowOrder::kSame, Presence::kAlways},
    {"blk.{}.attn_norm.weight", "model.layers.{}.input_layernorm.weight", RowOrder::kSame, Presence::kAlways},
    {"blk.{}.attn_q.weight", "model.layers.{}.self_attn.q_proj.weight", RowOrder::kQueryHeads,
     Presence::kAlways},
    {"blk.{}.attn_q.bias", "model.layers.{}.self_attn.q_proj.bias", RowOrder::kQueryHeads,
     Presence::kAttentionBias},
    {"blk.{}.attn_k.weight", "model.layers.{}.self_attn.k_proj.weight", RowOrder::kKeyHeads,
     Presence::kAlways},
    {"blk.{}.attn_k.bias", "model.layers.{}.self_attn.k_proj.bias", RowOrder::kKeyHeads,
     Presence::kAttentionBias},
    {"blk.{}.attn_v.weight", "model.layers.{}.self_attn.v_proj.weight", RowOrder::kSame, Presence::kAlways},
    {"blk.{}.attn_v.bias", "model.layers.{}.self_attn.v_proj.bias", RowOrder::kSame,
     Presence::kAttentionBias},
    {"blk.{}.attn_q_norm.weight", "model.layers.{}.self_attn.q_norm.weight", RowOrder::kSame,
     Presence::kQkNorm},
    {"blk.{}.attn_k_norm.weight", "model.layers.{}.self_attn.k_norm.weight", RowOrder::kSame,
     Presence::kQkNorm},
    {"blk.{}.attn_output.weight", "model.layers.{}.self_attn.o_proj.weight", RowOrder::kSame,
     Presence::kAlways},
    {"blk.{}.attn_output.bias", "model.layers.{}.self_attn.o_proj.bias", RowOrder::kSame,
     Presence::kOutputBias},
    {"blk.{}.ffn_norm.weight", "model.layers.{}.post_attention_layernorm.weight", RowOrder::kSame,
     Presence::kAlways},
    {"blk.{}.ffn_gate.weight", "model.layers.{}.mlp.gate_proj.weight", RowOrder::kSame, Presence::kAlways},
    {"blk.{}.ffn_gate.bias", "model.layers.{}.mlp.gate_proj.bias", RowOrder::kSame, Presence::kMlpBias},
    {"blk.{}.ffn_up.weight", "model.layers.{}.mlp.up_proj.weight", RowOrder::kSame, Presence::kAlways},
    {"blk.{}.ffn_up.bias", "model.layers.{}.mlp.up_proj.bias", RowOrder::kSame, Presence::kMlpBias},
    {"blk.{}.ffn_down.weight", "model.layers.{}.mlp.down_proj.weight", RowOrder::kSame, Presence::kAlways},
    {"blk.{}.ffn_down.bias", "model.layers.{}.mlp.down_proj.bias", RowOrder::kSame, Presence::kMlpBias},
    {"output_norm.weight", "model.norm.weight", RowOrder::kSame, Presence::kAlways},
    {"output.weight", "lm_head.weight", RowOrder::kSame, Presence::kUnlessTied},
};

bool per_layer(std::string_view pattern) {
  return pattern.find("{}") != std::string_view::npos;
}

// The layer's digits if `name` is `pattern` with a plain number for "{}".
std::optional<std::string_view> match_layer(std::string_view pattern, std::string_view name) {
  const size_t hole = pattern.find("{}");
  const std::string_view before = pattern.substr(0, hole), after = pattern.substr(hole + 2);
  if (name.size() <= before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after))
    return {};
  const std::string_view digits = name.substr(before.size(), name.size() - before.size() - after.size());
  if (digits.size() > 6 || (digits.size() > 1 && digits[0] == '0')) return {};
  if (digits.find_first_not_of("0123456789") != std::string_view::npos) return {};
  return digits;
}

std::string fill(std::string_view pattern, std::string_view digits) {
  std::string name(pattern);
  const size_t hole = name.find("{}");
  if (hole != std::string::npos) name.replace(hole, 2, digits);
  return name;
}

std::optional<TensorName> translate(std::string_view name, std::string_view Row::* from,
                                    std::string_view Row::* to) {
  for (const Row& row : kTable) {
    if (!per_layer(row.*from)) {
      if (name == row.*from) return TensorName{std::string(row.*to), row.rows};
    } else if (const auto digits = match_layer(row.*from, name)) {
      return TensorName{fill(row.*to, *digits), row.rows};
    }
  }
  return {};
}

bool present(const Row& row, const LlamaParts& parts) {
  switch (row.presence) {
    case Presence::kAlways:
      return true;
    case Presence::kUnlessTied:
      return !parts.tied;
    case Presence::kAttentionBias:
      return parts.attention_bias;
    case Presence::kOutputBias:
      return parts.attention_bias && !parts.no_output_bias;
    case Presence::kMlpBias:
      return parts.mlp_bias;
    case Presence::kQkNorm:
      return parts.qk_norm;
  }
  return false;
}

}  // namespace

std::optional<TensorName> hugging_face_name(std::string_view gguf_name) {
  return translate(gguf_name, &Row::gguf, &Row::hugging_face);
}

std::optional<TensorName> gguf_name(std::string_view hugging_face_name) {
  return translate(hugging_face_name, &Row::hugging_face, &Row::gguf);
}

std::vector<std::string> llama_tensor_names(const LlamaParts& parts) {
  std::vector<std::string> names = {"model.embed_tokens.weight"};
  for (int64_t layer = 0; layer < parts.layers; ++layer) {
    for (const Row& row : kTable) {
      if (per_layer(row.gguf) && present(row, parts)) {
        names.push_back(fill(row.hugging_face, std::to_string(layer)));
      }
    }
  }
  names.push_back("model.norm.weight");
  if (!parts.tied) names.push_back("lm_head.weight");
  return names;
}

int64_t half_split_row(int64_t gguf_row, int64_t head_size) {
  const int64_t head = gguf_row / head_size, within = gguf_row % head_size;
  return head * head_size + (within % 2) * (head_size / 2) + within / 2;
}

}  // namespace inlaid::formats
