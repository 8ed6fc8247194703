// The parts of DLPack 1.x that the binding exchanges (dlpack/include/dlpack/dlpack.h): layout fixed by that project.
#ifndef INLAID_BINDINGS_PYTHON_SRC_INLAID_DLPACK_H_
#define INLAID_BINDINGS_PYTHON_SRC_INLAID_DLPACK_H_

#include <cstdint>

extern "C" {

struct DLPackVersion {
  uint32_t major;
  uint32_t minor;
};
struct DLDevice {
  int32_t device_type;  // 1 = host memory
  int32_t device_id;
};
struct DLDataType {
  uint8_t code;  // 0 = signed integer, 2 = IEEE floating point
  uint8_t bits;
  uint16_t lanes;
};
struct DLTensor {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides;  // in elements; NULL = contiguous and row-major
  uint64_t byte_offset;
};
// Before version 1.
struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(DLManagedTensor *self);
};
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void *manager_ctx;
  void (*deleter)(DLManagedTensorVersioned *self);
  uint64_t flags;
  DLTensor dl_tensor;
};

}  // extern "C"

#endif  // INLAID_BINDINGS_PYTHON_SRC_INLAID_DLPACK_H_
