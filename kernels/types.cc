#include "kernels/kernels.h"

namespace inlaid::kernels {

const DTypeInfo& dtype_info(DType type) {
  static constexpr DTypeInfo kTypes[kDTypes] = {
      {"f64", 1, 8},       {"f32", 1, 4},       {"bf16", 1, 2},      {"f16", 1, 2},       {"i64", 1, 8},
      {"i32", 1, 4},       {"u8", 1, 1},        {"q4_0", 32, 18},    {"q4_1", 32, 20},    {"q8_0", 32, 34},
      {"q5_0", 32, 22},    {"q5_1", 32, 24},    {"q2_k", 256, 84},   {"q3_k", 256, 110},  {"q4_k", 256, 144},
      {"q5_k", 256, 176},  {"q6_k", 256, 210},
  };
  return kTypes[static_cast<int>(type)];
}

int64_t dtype_bytes(DType type, int64_t count) {
  const DTypeInfo& info = dtype_info(type);
  return count / info.block * info.bytes;
}

bool storage_type(DType type) {
  switch (type) {
    case DType::f64:
    case DType::i64:
    case DType::i32:
    case DType::u8: return false;
    default: return true;
  }
}

bool encoded_type(DType type) {
  switch (type) {
    case DType::f32:
    case DType::bf16:
    case DType::f16:
    case DType::q4_0:
    case DType::q4_1:
    case DType::q8_0:
    case DType::q5_0:
    case DType::q4_k: return true;
    default: return false;
  }
}

TensorView view1(void* data, DType type, int64_t n) {
  TensorView v;
  v.data = data;
  v.dtype = type;
  v.rank = 1;
  v.shape[0] = n;
  v.stride[0] = 1;
  return v;
}

TensorView view2(void* data, DType type, int64_t rows, int64_t columns) {
  TensorView v;
  v.data = data;
  v.dtype = type;
  v.rank = 2;
  v.shape[0] = rows;
  v.shape[1] = columns;
  v.stride[0] = columns;
  v.stride[1] = 1;
  return v;
}

const Executor& serial_executor() {
  static constexpr Executor kSerial = {
      nullptr, 1, [](void*, int64_t tasks, void (*fn)(void*, int64_t, int32_t), void* arg) {
        for (int64_t task = 0; task < tasks; ++task) fn(arg, task, 0);
      }};
  return kSerial;
}

}  // namespace inlaid::kernels
