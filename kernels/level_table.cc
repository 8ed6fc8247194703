// The kernels of one level as a table; compiled once per level.
#include "kernels/gemm/gemm.h"
#include "kernels/level.h"
#include "kernels/storage/storage.h"

namespace inlaid::kernels::INLAID_LEVEL {
namespace {

#define INLAID_STRING(x) INLAID_STRING_OF(x)
#define INLAID_STRING_OF(x) #x

// Of a kernel that needs no scratch.
template <typename Args>
size_t no_workspace(const Args&, int32_t) {
  return 0;
}

constexpr KernelTable kTable = {
    .name = INLAID_STRING(INLAID_LEVEL),
    .gemm_workspace = gemm_workspace,
    .gemm = gemm,
    .rms_norm_forward = rms_norm_forward,
    .rms_norm_backward_input = rms_norm_backward_input,
    .rms_norm_backward_weight_workspace = no_workspace<RmsNormBackwardWeightArgs>,
    .rms_norm_backward_weight = rms_norm_backward_weight,
    .rotary_table = rotary_table,
    .rotary = rotary,
    .attention_forward_workspace = attention_forward_workspace,
    .attention_forward = attention_forward,
    .attention_backward_workspace = attention_backward_workspace,
    .attention_backward = attention_backward,
    .gated_forward = gated_forward,
    .gated_backward = gated_backward,
    .embedding_forward = embedding_forward,
    .embedding_backward_workspace = no_workspace<EmbeddingBackwardArgs>,
    .embedding_backward = embedding_backward,
    .cross_entropy = cross_entropy,
    .soft_cap = soft_cap,
    .soft_cap_backward = soft_cap_backward,
    .gather_rows = gather_rows,
    .scatter_rows = scatter_rows,
    .add = add,
    .dropout = dropout,
    .sum_rows_workspace = no_workspace<SumRowsArgs>,
    .sum_rows = sum_rows,
    .sum_squares_workspace = sum_squares_workspace,
    .sum_squares = sum_squares,
    .adamw = adamw,
    .convert = convert,
};

}  // namespace

const KernelTable& table() {
  return kTable;
}

}  // namespace inlaid::kernels::INLAID_LEVEL
