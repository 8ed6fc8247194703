// Where kernels run. `cpu` calls a kernel table on a pool; `meta` runs nothing and only learns how much scratch memory every
// call would need, from the same arguments: that is how a step program is planned before anything is allocated.
#ifndef INLAID_SDK_TENSOR_DEVICE_H_
#define INLAID_SDK_TENSOR_DEVICE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"

namespace inlaid {

class Device {
 public:
  // Calls run on `executor` with scratch from [workspace, workspace + bytes). All must outlive the device.
  static Device cpu(const kernels::KernelTable& table, const kernels::Executor& executor, std::byte* workspace,
                    uint64_t bytes);
  // Calls only raise workspace_needed(), as if `threads` threads were there.
  static Device meta(const kernels::KernelTable& table, int32_t threads);

  bool is_meta() const { return meta_; }
  uint64_t workspace_needed() const { return needed_; }

  void gemm(const kernels::GemmArgs& args);
  void rms_norm_forward(const kernels::RmsNormForwardArgs& args);
  void rms_norm_backward_input(const kernels::RmsNormBackwardInputArgs& args);
  void rms_norm_backward_weight(const kernels::RmsNormBackwardWeightArgs& args);
  void rotary_table(const kernels::RotaryTableArgs& args);
  void rotary(const kernels::RotaryArgs& args);
  void attention_forward(const kernels::AttentionForwardArgs& args);
  void attention_backward(const kernels::AttentionBackwardArgs& args);
  void gated_forward(const kernels::GatedForwardArgs& args);
  void gated_backward(const kernels::GatedBackwardArgs& args);
  void embedding_forward(const kernels::EmbeddingForwardArgs& args);
  void embedding_backward(const kernels::EmbeddingBackwardArgs& args);
  void cross_entropy(const kernels::CrossEntropyArgs& args);
  void soft_cap(const kernels::SoftCapArgs& args);
  void soft_cap_backward(const kernels::SoftCapBackwardArgs& args);
  void gather_rows(const kernels::GatherRowsArgs& args);
  void scatter_rows(const kernels::ScatterRowsArgs& args);
  void add(const kernels::AddArgs& args);
  void dropout(const kernels::DropoutArgs& args);
  void sum_rows(const kernels::SumRowsArgs& args);
  void sum_squares(const kernels::SumSquaresArgs& args);
  void adamw(const kernels::AdamWArgs& args);
  void convert(const kernels::ConvertArgs& args);

 private:
  Device(const kernels::KernelTable& table, int32_t threads, bool meta) : table_(table), threads_(threads), meta_(meta) {}
  template <typename Args>
  void call(size_t (*workspace)(const Args&, int32_t), void (*kernel)(const kernels::Context&, const Args&),
            const Args& args);
  template <typename Args>
  void call(void (*kernel)(const kernels::Context&, const Args&), const Args& args);

  const kernels::KernelTable& table_;
  kernels::Context context_;
  int32_t threads_;
  bool meta_;
  uint64_t needed_ = 0;
};

}  // namespace inlaid

#endif  // INLAID_SDK_TENSOR_DEVICE_H_
