#include "sdk/formats/gguf_types.h"

#include "sdk/base/error.h"

namespace inlaid::formats {
namespace {

struct GgmlType {
  uint32_t id;
  const char* name;
  std::optional<DType> dtype;
};
constexpr GgmlType kTypes[] = {
    {0, "F32", DType::f32},    {1, "F16", DType::f16},    {30, "BF16", DType::bf16}, {2, "Q4_0", DType::q4_0},
    {3, "Q4_1", DType::q4_1},  {6, "Q5_0", DType::q5_0},  {7, "Q5_1", DType::q5_1},  {8, "Q8_0", DType::q8_0},
    {10, "Q2_K", DType::q2_k}, {11, "Q3_K", DType::q3_k}, {12, "Q4_K", DType::q4_k}, {13, "Q5_K", DType::q5_k},
    {14, "Q6_K", DType::q6_k}, {9, "Q8_1", {}},           {15, "Q8_K", {}},          {16, "IQ2_XXS", {}},
    {17, "IQ2_XS", {}},        {18, "IQ3_XXS", {}},       {19, "IQ1_S", {}},         {20, "IQ4_NL", {}},
    {21, "IQ3_S", {}},         {22, "IQ2_S", {}},         {23, "IQ4_XS", {}},        {24, "I8", {}},
    {25, "I16", {}},           {26, "I32", {}},           {27, "I64", {}},           {28, "F64", {}},
    {29, "IQ1_M", {}},         {34, "TQ1_0", {}},         {35, "TQ2_0", {}},         {39, "MXFP4", {}},
    {40, "NVFP4", {}},         {41, "Q1_0", {}},          {42, "Q2_0", {}},
};
constexpr DType kExported[] = {DType::f32, DType::bf16, DType::f16, DType::q8_0, DType::q4_0, DType::q4_k};

bool fits(DType type, const Shape& shape) { return shape.back() % kernels::dtype_info(type).block == 0; }

}  // namespace

std::optional<DType> dtype_of_ggml(uint32_t id) {
  for (const GgmlType& type : kTypes) {
    if (type.id == id) return type.dtype;
  }
  return {};
}

uint32_t ggml_of_dtype(DType dtype) {
  for (const GgmlType& type : kTypes) {
    if (type.dtype == dtype) return type.id;
  }
  fail(Code::kInvalidArgument, "a GGUF file cannot hold ", dtype_name(dtype), "; use f32, bf16, f16, q8_0, q4_0 or q4_k");
}

const char* ggml_name(uint32_t id) {
  for (const GgmlType& type : kTypes) {
    if (type.id == id) return type.name;
  }
  return nullptr;
}

std::string readable_ggml_names() {
  std::string names;
  for (const GgmlType& type : kTypes) {
    if (type.dtype) names += (names.empty() ? "" : ", ") + std::string(type.name);
  }
  return names;
}

int64_t gguf_file_type(DType type) {
  switch (type) {
    case DType::f16: return 1;
    case DType::q4_0: return 2;
    case DType::q4_1: return 3;
    case DType::q8_0: return 7;
    case DType::q5_0: return 8;
    case DType::q5_1: return 9;
    case DType::q2_k: return 10;
    case DType::q3_k: return 11;  // the small variant of several: no tensor is held in a better type
    case DType::q4_k: return 14;  // likewise
    case DType::q5_k: return 16;  // likewise
    case DType::q6_k: return 18;
    case DType::bf16: return 32;
    default: return 0;
  }
}

std::span<const DType> gguf_export_types() { return kExported; }

DType gguf_export_type(DType wanted, const Shape& shape) {
  if (shape.size() < 2) return DType::f32;
  if (wanted != DType::q4_k || fits(wanted, shape)) return wanted;
  return fits(DType::q5_0, shape) ? DType::q5_0 : DType::f16;
}

}  // namespace inlaid::formats
