// The kernels of one level: reference, portable, avx2 or avx512. Included by files that are compiled once per
// level, with INLAID_LEVEL set to its name; so each kernel is declared here once and defined once per level,
// in a namespace of its own.
#ifndef INLAID_KERNELS_LEVEL_H_
#define INLAID_KERNELS_LEVEL_H_

#include "kernels/kernels.h"

namespace inlaid::kernels::INLAID_LEVEL {

void rms_norm_forward(const Context&, const RmsNormForwardArgs&);
void rms_norm_backward_input(const Context&, const RmsNormBackwardInputArgs&);
void rms_norm_backward_weight(const Context&, const RmsNormBackwardWeightArgs&);
void rotary_table(const Context&, const RotaryTableArgs&);
void rotary(const Context&, const RotaryArgs&);
size_t attention_forward_workspace(const AttentionForwardArgs&, int32_t threads);
void attention_forward(const Context&, const AttentionForwardArgs&);
size_t attention_backward_workspace(const AttentionBackwardArgs&, int32_t threads);
void attention_backward(const Context&, const AttentionBackwardArgs&);
void gated_forward(const Context&, const GatedForwardArgs&);
void gated_backward(const Context&, const GatedBackwardArgs&);
void embedding_forward(const Context&, const EmbeddingForwardArgs&);
void embedding_backward(const Context&, const EmbeddingBackwardArgs&);
void cross_entropy(const Context&, const CrossEntropyArgs&);
void soft_cap(const Context&, const SoftCapArgs&);
void soft_cap_backward(const Context&, const SoftCapBackwardArgs&);
void gather_rows(const Context&, const GatherRowsArgs&);
void scatter_rows(const Context&, const ScatterRowsArgs&);
void add(const Context&, const AddArgs&);
void dropout(const Context&, const DropoutArgs&);
void sum_rows(const Context&, const SumRowsArgs&);
size_t sum_squares_workspace(const SumSquaresArgs&, int32_t threads);
void sum_squares(const Context&, const SumSquaresArgs&);
void adamw(const Context&, const AdamWArgs&);

const KernelTable& table();

}  // namespace inlaid::kernels::INLAID_LEVEL

#endif  // INLAID_KERNELS_LEVEL_H_
