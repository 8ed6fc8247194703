// The table of numeric kernels that every backend fills, and the few types they speak: element types, tensor views, an
// executor that lends threads, and one argument struct per kernel. Knows nothing of the engine above it.
//
// Conventions, for every kernel unless its comment says otherwise:
//   - Views are row-major; the last dimension has stride 1; rows may be further apart than their length.
//   - Activations and gradients are f32 (f64 in the reference table, for tests). Weights may be stored in any type for
//     which storage_type() is true; they are converted to the compute type while they are read.
//   - "accumulate" means += into the output, otherwise =. Gradients of weights always accumulate.
//   - Sums over rows or columns have an order that depends on shapes only: the same bits for any number of threads. Where a
//     row's result does not depend on other rows, it also does not depend on how many rows there are.
//   - A kernel checks nothing: shapes were checked when the step program was recorded. It allocates nothing: scratch comes
//     from Context::workspace, whose size its `_workspace` twin computes from the same arguments (data pointers unused).
//   - T rows of tokens, H hidden width, D head size, V vocabulary.
#ifndef INLAID_KERNELS_KERNELS_H_
#define INLAID_KERNELS_KERNELS_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace inlaid::kernels {

enum class DType : int32_t {
  f64, f32, bf16, f16, i64, i32, u8, q4_0, q4_1, q8_0,
  q5_0, q5_1, q2_k, q3_k, q4_k, q5_k, q6_k,
};
constexpr int kDTypes = 17;

// Block-quantised types hold `block` values of the last dimension in `bytes` bytes; plain types have block 1.
//   q4_0: f16 d, 16 bytes of nibbles: value j = d * (low nibble of byte j - 8), j + 16 from the high nibble.  18 bytes
//   q4_1: f16 d, f16 m, 16 bytes of nibbles: value = d * q + m, same nibble order.                            20 bytes
//   q8_0: f16 d, 32 x int8: value = d * q.                                                                    34 bytes
//   q5_0: f16 d, 32 fifth bits, nibbles as in q4_0: value = d * (q - 16).                                     22 bytes
//   q5_1: f16 d, f16 m, 32 fifth bits, nibbles: value = d * q + m.                                            24 bytes
// K-quants are blocks of 256 with small integer scales for groups inside; layouts in storage/super_block.h:
//   q2_k, q4_k, q5_k: value = (d * s) * q - (dmin * m)      16 groups of 16, 8 of 32, 8 of 32      84, 144, 176 bytes
//   q3_k, q6_k:       value = (d * s) * q                   16 groups of 16                            110, 210 bytes
// (format: ggml; each product and sum is one f32 rounding)
struct DTypeInfo {
  const char* name;
  int32_t block;
  int32_t bytes;
};
const DTypeInfo& dtype_info(DType type);
// Bytes of `count` consecutive elements; count is a multiple of the block.
int64_t dtype_bytes(DType type, int64_t count);
// True for types in which a frozen weight may be held.
bool storage_type(DType type);
// True for storage types that can also be written; the others are only read from files.
bool encoded_type(DType type);

constexpr int kMaxRank = 8;

// A view of memory owned by somebody else. Strides are in elements; rank 0 with data == nullptr means "absent".
struct TensorView {
  void* data = nullptr;
  DType dtype = DType::f32;
  int32_t rank = 0;
  int64_t shape[kMaxRank] = {};
  int64_t stride[kMaxRank] = {};

  explicit operator bool() const { return data != nullptr; }
  int64_t elements() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= shape[i];
    return n;
  }
  template <typename T>
  T* as() const { return static_cast<T*>(data); }
};

// Contiguous views.
TensorView view1(void* data, DType type, int64_t n);
TensorView view2(void* data, DType type, int64_t rows, int64_t columns);

// Lends threads. run() calls fn(arg, task, thread) for every task in [0, tasks) and returns when all are done; calls with
// equal `thread` never overlap; 0 <= thread < threads.
struct Executor {
  void* self;
  int32_t threads;
  void (*run)(void* self, int64_t tasks, void (*fn)(void* arg, int64_t task, int32_t thread), void* arg);
};

// Runs everything on the calling thread.
const Executor& serial_executor();

// Calls fn(task, thread) for every task through the executor.
template <typename Fn>
void parallel(const Executor& executor, int64_t tasks, Fn&& fn) {
  executor.run(
      executor.self, tasks,
      [](void* arg, int64_t task, int32_t thread) { (*static_cast<std::remove_reference_t<Fn>*>(arg))(task, thread); },
      const_cast<void*>(static_cast<const void*>(&fn)));
}

struct Context {
  const Executor* executor = nullptr;
  std::byte* workspace = nullptr;  // 64-byte aligned
  size_t workspace_bytes = 0;
};

// C[m,n] = alpha * op(A)[m,k] op(B)[k,n] (+ C if accumulate) (+ bias[n] if present). A and C are in the compute type; B may
// be a stored weight. Sums run over k in ascending blocks of fixed size.
// The three products of a linear layer y = x W^T, W [out,in]:
//   y[T,out]     = x[T,in]  W^T      transpose_b
//   dx[T,in]     = dy[T,out] W
//   dW[out,in]  += dy^T x            transpose_a, accumulate
struct GemmArgs {
  TensorView a, b, c, bias;
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;
  double alpha = 1.0;
};

// y[t,:] = x[t,:] * rstd[t] * w, rstd[t] = 1 / sqrt(mean(x^2) + eps).  (RMSNorm, arXiv 1910.07467)
// w = weight + weight_offset; the offset is 1 where a model stores what is added to one (Gemma).
struct RmsNormForwardArgs {
  TensorView x, weight, y, rstd;  // [T,H] [H] [T,H] [T]
  double eps = 0;
  double weight_offset = 0;
};
// dx = rstd * (dy*w - x * rstd^2 * mean(dy*w*x)).
struct RmsNormBackwardInputArgs {
  TensorView dy, x, weight, rstd, dx;
  bool accumulate = false;
  double weight_offset = 0;
};
// dweight += sum_t dy[t,:] * x[t,:] * rstd[t].
struct RmsNormBackwardWeightArgs {
  TensorView dy, x, rstd, dweight;
};

// cos[t,i] = scale * cos(positions[t] * f[i]), sin likewise; angle computed in f64. f is inv_freq, unless the length of the
// document that row t belongs to, lengths[t], is over long_after; then
//   longrope (long_inv_freq is there): f = long_inv_freq
//   dynamic NTK:                       f[i] = inv_freq[i] * g^(-2i/(R-2)),  g = ntk_factor * length / long_after - ntk_factor + 1
// (the latter is inv_freq of the base theta * g^(R/(R-2)), transformers modeling_rope_utils).
struct RotaryTableArgs {
  TensorView positions, inv_freq, cos, sin;  // [T] i32, [R/2] f64, [T,R/2], [T,R/2]
  double scale = 1.0;
  TensorView lengths = {};        // [T] i32; absent: inv_freq whatever the length
  TensorView long_inv_freq = {};  // [R/2] f64
  int64_t long_after = 0;
  double ntk_factor = 1.0;
};
// In place on x[T, heads*D], on the first R columns of every head: half-split pairs (i, i + R/2), a' = a c - b s,
// b' = b c + a s; inverse uses -s (the gradient). The other D - R columns stay.
struct RotaryArgs {
  TensorView x, cos, sin;
  int64_t heads = 0;
  bool inverse = false;
};

// Causal self-attention over documents packed in one row range. Document i owns query rows [cu_q[i], cu_q[i+1]) and key
// rows [cu_k[i], cu_k[i+1]); query j of a document of q queries and k keys sees keys 0 .. k - q + j, with a window only the
// last `window` of these (itself included). Empty documents are fine. Head h of heads reads key head h / (heads / kv_heads).
// Never materialises a T x T matrix, and skips what is outside of the window.
// Rows that no document owns become 0. A query that sees no key (more queries than keys) has out 0 and lse -inf.
// A row's bits do not depend on the other documents, but on whether its document has few queries (decoding) or many.
//   out = softmax(s) v ;  lse[h,t] = log-sum-exp of s.  (FlashAttention-2, arXiv 2307.08691)
//   s = scale * q k^T, with a soft cap c: s = c tanh(scale * q k^T / c).
struct AttentionForwardArgs {
  TensorView q, k, v, out;   // [Tq, heads*D] [Tk, kv_heads*D] [Tk, kv_heads*D] [Tq, heads*D]
  TensorView lse;            // [heads, Tq], f32 (f64 in the reference)
  TensorView cu_q, cu_k;     // [documents+1] i32
  int64_t heads = 0, kv_heads = 0, head_size = 0;
  double scale = 1.0;
  int64_t window = 0;
  double soft_cap = 0;
};
// dq, dk, dv = (not accumulated), rows of no document 0. The order of every sum is fixed.
struct AttentionBackwardArgs {
  TensorView dout, q, k, v, out, lse;
  TensorView dq, dk, dv;
  TensorView cu_q, cu_k;
  int64_t heads = 0, kv_heads = 0, head_size = 0;
  double scale = 1.0;
  int64_t window = 0;        // 0: none
  double soft_cap = 0;       // 0: none
};

enum class Activation : int32_t { silu, gelu, gelu_tanh, relu };  // gelu = erf form

// y = act(gate) * up.
struct GatedForwardArgs {
  TensorView gate, up, y;  // [T,F]
  Activation activation = Activation::silu;
};
// dgate = dy * up * act'(gate), dup = dy * act(gate). dgate may be gate, dup may be up (in place). dy may be y's storage.
struct GatedBackwardArgs {
  TensorView dy, gate, up, dgate, dup;
  Activation activation = Activation::silu;
};

// y[t,:] = scale * weight[ids[t],:].
struct EmbeddingForwardArgs {
  TensorView ids, weight, y;  // [T] i32, [V,H] stored, [T,H]
  double scale = 1.0;
};
// dweight[ids[t],:] += scale * dy[t,:], for each row in ascending t.
struct EmbeddingBackwardArgs {
  TensorView ids, dy, dweight;
  double scale = 1.0;
};

// Rows of logits to losses, in place: loss[r] = lse(logits[r,:]) - logits[r,target[r]]; and, if `gradient`,
// logits[r,:] = gradient_scale * (softmax(logits[r,:]) - onehot(target[r])). correct[r] (optional, i32) = 1 if the first
// largest logit is the target's. With a soft cap c, c tanh(logits / c) stands for the logits in all of this, and the gradient is
// still that of the logits given. A row scale (optional) multiplies row r of the gradient: where a loss of the caller's own has the
// derivative row_scale[r] with respect to loss[r].
struct CrossEntropyArgs {
  TensorView logits, targets, loss, correct;  // [R,V] [R] i32 [R] [R] i32
  bool gradient = false;
  double gradient_scale = 1.0;
  double soft_cap = 0;  // 0: none
  TensorView row_scale = {};  // [R]
};

// x = cap * tanh(x / cap), in place.
struct SoftCapArgs {
  TensorView x;
  double cap = 0;
};
// x = dy * (1 - tanh(x / cap)^2), in place: dy is the gradient of the capped x.
struct SoftCapBackwardArgs {
  TensorView x, dy;
  double cap = 0;
};

// y[r,:] = x[index[r],:].
struct GatherRowsArgs {
  TensorView x, index, y;  // [T,H] [R] i32 [R,H]
};
// y = 0 everywhere, then y[index[r],:] = x[r,:] (indices distinct).
struct ScatterRowsArgs {
  TensorView x, index, y;  // [R,H] [R] i32 [T,H]
};

// y = a + b; y may be a or b.
struct AddArgs {
  TensorView a, b, y;
};

// y[t,c] (= or +=) x[t,c] * mask / (1 - p). The mask is Philox4x32-10 keyed by `key`, with counter words
// (c / 4, positions[t], low and high word of row_keys[t]); element c uses output word c % 4, dropped when
// word < p * 2^32. So a token's mask depends on (key, sample, position, column) and nothing else. In place is fine.
struct DropoutArgs {
  TensorView x, y, row_keys, positions;  // [T,H] [T,H] [T] i64 [T] i32
  uint64_t key = 0;
  double p = 0;
  bool accumulate = false;
};

// y[c] += sum_t x[t,c] (gradient of a bias).
struct SumRowsArgs {
  TensorView x, y;
};

// out[0] (f64) = sum of squares of a flat f32 array, in blocks of fixed size.
struct SumSquaresArgs {
  TensorView x, out;
};

// One pass of AdamW (arXiv 1711.05101) over flat arrays of one decay class; g' = grad_scale * g:
//   m = beta1 m + (1-beta1) g' ; v = beta2 v + (1-beta2) g'^2
//   p = p * (1 - lr*weight_decay) - lr * (m / (1-beta1^step)) / (sqrt(v / (1-beta2^step)) + eps) ; g = 0
struct AdamWArgs {
  TensorView parameter, gradient, m, v;  // flat, f32
  double lr = 0, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0, grad_scale = 1;
  int64_t step = 1;
};

// dst = src converted, both [rows, columns] or flat, equal shapes. From any storage type to f32/f64 exactly as the format
// says; from f32 to bf16 and f16 (round to nearest even; NaN stays NaN) and, where encoded_type() is true, to blocks with
// ggml's reference rounding.
struct ConvertArgs {
  TensorView src, dst;
};

struct KernelTable {
  int32_t version = 1;
  const char* name = "";  // "reference", "portable", "avx2", "avx512"

  size_t (*gemm_workspace)(const GemmArgs&, int32_t threads);
  void (*gemm)(const Context&, const GemmArgs&);
  void (*rms_norm_forward)(const Context&, const RmsNormForwardArgs&);
  void (*rms_norm_backward_input)(const Context&, const RmsNormBackwardInputArgs&);
  size_t (*rms_norm_backward_weight_workspace)(const RmsNormBackwardWeightArgs&, int32_t threads);
  void (*rms_norm_backward_weight)(const Context&, const RmsNormBackwardWeightArgs&);
  void (*rotary_table)(const Context&, const RotaryTableArgs&);
  void (*rotary)(const Context&, const RotaryArgs&);
  size_t (*attention_forward_workspace)(const AttentionForwardArgs&, int32_t threads);
  void (*attention_forward)(const Context&, const AttentionForwardArgs&);
  size_t (*attention_backward_workspace)(const AttentionBackwardArgs&, int32_t threads);
  void (*attention_backward)(const Context&, const AttentionBackwardArgs&);
  void (*gated_forward)(const Context&, const GatedForwardArgs&);
  void (*gated_backward)(const Context&, const GatedBackwardArgs&);
  void (*embedding_forward)(const Context&, const EmbeddingForwardArgs&);
  size_t (*embedding_backward_workspace)(const EmbeddingBackwardArgs&, int32_t threads);
  void (*embedding_backward)(const Context&, const EmbeddingBackwardArgs&);
  void (*cross_entropy)(const Context&, const CrossEntropyArgs&);
  void (*soft_cap)(const Context&, const SoftCapArgs&);
  void (*soft_cap_backward)(const Context&, const SoftCapBackwardArgs&);
  void (*gather_rows)(const Context&, const GatherRowsArgs&);
  void (*scatter_rows)(const Context&, const ScatterRowsArgs&);
  void (*add)(const Context&, const AddArgs&);
  void (*dropout)(const Context&, const DropoutArgs&);
  size_t (*sum_rows_workspace)(const SumRowsArgs&, int32_t threads);
  void (*sum_rows)(const Context&, const SumRowsArgs&);
  size_t (*sum_squares_workspace)(const SumSquaresArgs&, int32_t threads);
  void (*sum_squares)(const Context&, const SumSquaresArgs&);
  void (*adamw)(const Context&, const AdamWArgs&);
  void (*convert)(const Context&, const ConvertArgs&);
};

// Plain loops over f32 or f64, the oracle of every other table. Accepts f64 wherever "compute type" is said.
const KernelTable& reference_kernels();

enum class CpuLevel : int32_t { portable, avx2, avx512 };
// The best level this processor offers.
CpuLevel cpu_level();
// The CPU backend at a level that the processor offers; f32.
const KernelTable& cpu_kernels(CpuLevel level);

}  // namespace inlaid::kernels

#endif  // INLAID_KERNELS_KERNELS_H_
