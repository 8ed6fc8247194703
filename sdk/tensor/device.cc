#include "sdk/tensor/device.h"

#include "sdk/base/error.h"

namespace inlaid {

Device Device::cpu(const kernels::KernelTable& table, const kernels::Executor& executor, std::byte* workspace,
                   uint64_t bytes) {
  Device device(table, executor.threads, false);
  device.context_ = {&executor, workspace, static_cast<size_t>(bytes)};
  return device;
}

Device Device::meta(const kernels::KernelTable& table, int32_t threads) { return Device(table, threads, true); }

template <typename Args>
void Device::call(size_t (*workspace)(const Args&, int32_t), void (*kernel)(const kernels::Context&, const Args&),
                  const Args& args) {
  const uint64_t needed = workspace(args, threads_);
  if (meta_) {
    needed_ = std::max(needed_, needed);
    return;
  }
  if (needed > context_.workspace_bytes) {
    fail(Code::kInternal, "a kernel needs ", needed, " bytes of workspace, planned were ", context_.workspace_bytes);
  }
  kernel(context_, args);
}

template <typename Args>
void Device::call(void (*kernel)(const kernels::Context&, const Args&), const Args& args) {
  if (!meta_) kernel(context_, args);
}

void Device::gemm(const kernels::GemmArgs& args) { call(table_.gemm_workspace, table_.gemm, args); }
void Device::rms_norm_forward(const kernels::RmsNormForwardArgs& args) { call(table_.rms_norm_forward, args); }
void Device::rms_norm_backward_input(const kernels::RmsNormBackwardInputArgs& args) {
  call(table_.rms_norm_backward_input, args);
}
void Device::rms_norm_backward_weight(const kernels::RmsNormBackwardWeightArgs& args) {
  call(table_.rms_norm_backward_weight_workspace, table_.rms_norm_backward_weight, args);
}
void Device::rotary_table(const kernels::RotaryTableArgs& args) { call(table_.rotary_table, args); }
void Device::rotary(const kernels::RotaryArgs& args) { call(table_.rotary, args); }
void Device::attention_forward(const kernels::AttentionForwardArgs& args) {
  call(table_.attention_forward_workspace, table_.attention_forward, args);
}
void Device::attention_backward(const kernels::AttentionBackwardArgs& args) {
  call(table_.attention_backward_workspace, table_.attention_backward, args);
}
void Device::gated_forward(const kernels::GatedForwardArgs& args) { call(table_.gated_forward, args); }
void Device::gated_backward(const kernels::GatedBackwardArgs& args) { call(table_.gated_backward, args); }
void Device::embedding_forward(const kernels::EmbeddingForwardArgs& args) { call(table_.embedding_forward, args); }
void Device::embedding_backward(const kernels::EmbeddingBackwardArgs& args) {
  call(table_.embedding_backward_workspace, table_.embedding_backward, args);
}
void Device::cross_entropy(const kernels::CrossEntropyArgs& args) { call(table_.cross_entropy, args); }
void Device::soft_cap(const kernels::SoftCapArgs& args) { call(table_.soft_cap, args); }
void Device::soft_cap_backward(const kernels::SoftCapBackwardArgs& args) { call(table_.soft_cap_backward, args); }
void Device::gather_rows(const kernels::GatherRowsArgs& args) { call(table_.gather_rows, args); }
void Device::scatter_rows(const kernels::ScatterRowsArgs& args) { call(table_.scatter_rows, args); }
void Device::add(const kernels::AddArgs& args) { call(table_.add, args); }
void Device::dropout(const kernels::DropoutArgs& args) { call(table_.dropout, args); }
void Device::sum_rows(const kernels::SumRowsArgs& args) { call(table_.sum_rows_workspace, table_.sum_rows, args); }
void Device::sum_squares(const kernels::SumSquaresArgs& args) {
  call(table_.sum_squares_workspace, table_.sum_squares, args);
}
void Device::adamw(const kernels::AdamWArgs& args) { call(table_.adamw, args); }
void Device::convert(const kernels::ConvertArgs& args) { call(table_.convert, args); }

}  // namespace inlaid
