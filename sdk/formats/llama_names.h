// Names of the tensors of a llama-like decoder in Hugging Face folders and in GGUF files, from one table
// (llama_names.cc): an importer of a further family adds its rows there. "{}" in a pattern stands for the
// number of a layer.
//
// The trap: GGUF stores the rows of q and k for interleaved rotary embedding (rows 2i and 2i+1 of a head are
// one rotation pair), Hugging Face for half-split rotation (rows i and i + D/2). Within each head of D rows
//   GGUF row 2i + j  =  Hugging Face row j D/2 + i       (i = 0 .. D/2 - 1, j = 0, 1)
// Mixing the two up still gives plausible text. Whole rows move, so that blocks of quantised rows stay as
// they are.
//
// Tests: llama_names_test.cc, golden_test.cc (against the writer of the oracle), model_test.cc (a real
// model).
#ifndef INLAID_SDK_FORMATS_LLAMA_NAMES_H_
#define INLAID_SDK_FORMATS_LLAMA_NAMES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace inlaid::formats {

// How the rows of a tensor are ordered in GGUF relative to Hugging Face.
enum class RowOrder { kSame, kQueryHeads, kKeyHeads };

struct TensorName {
  std::string name;
  RowOrder rows = RowOrder::kSame;
};

// The other format's name, or nothing for a name that the table does not have.
std::optional<TensorName> hugging_face_name(std::string_view gguf_name);
std::optional<TensorName> gguf_name(std::string_view hugging_face_name);

// All Hugging Face names of a model, in the order of computation.
struct LlamaParts {
  int64_t layers = 0;
  bool tied = false;            // no lm_head
  bool attention_bias = false;  // q, k, v, o
  bool mlp_bias = false;        // gate, up, down
  bool no_output_bias = false;  // attention_bias is of q, k, v only
  bool qk_norm = false;
};
std::vector<std::string> llama_tensor_names(const LlamaParts& parts);

// The Hugging Face row that is row `gguf_row` in GGUF; `head_size` is even.
int64_t half_split_row(int64_t gguf_row, int64_t head_size);

}  // namespace inlaid::formats

#endif  // INLAID_SDK_FORMATS_LLAMA_NAMES_H_
