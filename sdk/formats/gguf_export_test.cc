// Exports in every type: which tensor gets which type, and how much of the values is left.
#include <cmath>

#include "kernels/storage/storage.h"
#include "sdk/base/testing/memory_file_system.h"
#include "sdk/formats/gguf_file.h"
#include "sdk/formats/gguf_types.h"
#include "sdk/formats/testing.h"

namespace inlaid::formats {
namespace {

using testing::MemoryFileSystem;

// Rows of 256 (hidden), 64 (heads) and 48 (MLP).
ModelFiles model_of_long_rows() {
  ModelFiles model = tiny_model();
  model.config["hidden_size"] = 256;
  model.config["intermediate_size"] = 48;
  model.config["num_attention_heads"] = 4;
  model.config["num_key_value_heads"] = 2;
  model.config["head_dim"] = 16;
  return model;
}

std::vector<ExportTensor> tensors_as(const Json& config, DType wanted) {
  std::vector<ExportTensor> tensors = tiny_tensors(config, DType::f32);
  for (ExportTensor& tensor : tensors) tensor.dtype = gguf_export_type(wanted, tensor.shape);
  return tensors;
}

TEST(GgufExport, TypeOfAShape) {
  for (DType type : gguf_export_types()) {
    EXPECT_EQ(gguf_export_type(type, {256}), DType::f32) << dtype_name(type);  // a vector
    EXPECT_EQ(gguf_export_type(type, {7, 512}), type) << dtype_name(type);
    EXPECT_TRUE(kernels::encoded_type(type));
    EXPECT_EQ(dtype_of_ggml(ggml_of_dtype(type)), type);
  }
  EXPECT_EQ(gguf_export_type(DType::q4_k, {512, 576}), DType::q5_0);
  EXPECT_EQ(gguf_export_type(DType::q4_k, {512, 48}), DType::f16);
  EXPECT_EQ(gguf_export_type(DType::q8_0, {512, 48}), DType::q8_0);  // refused when it is written
}

TEST(GgufExport, FallsBackWhereBlocksOf256DoNotFit) {
  MemoryFileSystem fs;
  const ModelFiles model = model_of_long_rows();
  write_gguf(fs, "/m.gguf", model, tensors_as(model.config, DType::q4_k));
  const GgufFile file(fs, "/m.gguf");
  const auto type = [&](const char* name) { return file.find_tensor(name)->dtype; };
  EXPECT_EQ(type("blk.0.attn_q.weight"), DType::q4_k);
  EXPECT_EQ(type("blk.0.ffn_gate.weight"), DType::q4_k);
  EXPECT_EQ(type("token_embd.weight"), DType::q4_k);
  EXPECT_EQ(type("blk.0.attn_output.weight"), DType::q5_0);  // 64 columns
  EXPECT_EQ(type("blk.0.ffn_down.weight"), DType::f16);      // 48 columns
  EXPECT_EQ(type("blk.0.attn_norm.weight"), DType::f32);
  EXPECT_EQ(type("blk.0.attn_q.bias"), DType::f32);
  EXPECT_EQ(file.integer("general.file_type"), 14);
  EXPECT_EQ(file.integer("general.quantization_version"), 2);
}

double relative_error(const std::vector<float>& actual, const std::vector<float>& wanted) {
  double error = 0, power = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    error += std::pow(double{actual[i]} - double{wanted[i]}, 2);
    power += std::pow(double{wanted[i]}, 2);
  }
  return std::sqrt(error / power);
}

// Written, read and decoded: as close as the bits of the type allow, and no closer.
TEST(GgufExport, EveryTypeThereAndBack) {
  MemoryFileSystem fs;
  ModelFiles model = model_of_long_rows();
  model.config["intermediate_size"] = 256;
  model.config["head_dim"] = 64;
  const std::map<DType, std::pair<int64_t, double>> expected = {  // general.file_type, error of a sine
      {DType::f32, {0, 0}},      {DType::f16, {1, 3e-4}},   {DType::bf16, {32, 3e-3}},
      {DType::q8_0, {7, 6e-3}},  {DType::q4_0, {2, 0.12}},  {DType::q4_k, {14, 0.08}}};
  ASSERT_EQ(gguf_export_types().size(), expected.size());
  for (DType type : gguf_export_types()) {
    fs.remove_all("/m.gguf");
    const auto [file_type, bound] = expected.at(type);
    const std::vector<ExportTensor> tensors = tensors_as(model.config, type);
    write_gguf(fs, "/m.gguf", model, tensors);
    EXPECT_EQ(GgufFile(fs, "/m.gguf").integer("general.file_type"), file_type) << dtype_name(type);
    const ModelFiles read = open_model(fs, "/m.gguf");
    for (const ExportTensor& tensor : tensors) {
      std::vector<float> wanted(static_cast<size_t>(element_count(tensor.shape)));
      tensor.values(wanted);
      const std::vector<float> actual = values_of(*read.weights, tensor.name);
      const double error = relative_error(actual, wanted);
      EXPECT_LE(error, tensor.shape.size() == 1 ? 0 : bound) << dtype_name(type) << " " << tensor.name;
      if (tensor.shape.size() > 1) {
        EXPECT_GE(error, bound / 10) << dtype_name(type) << " " << tensor.name;
      }
      EXPECT_EQ(read.weights->tensors()[index_of(*read.weights, tensor.name)].dtype, tensor.dtype);
    }
  }
}

TEST(GgufExport, RefusesWhatATypeCannotHold) {
  MemoryFileSystem fs;
  const ModelFiles model = model_of_long_rows();
  const auto refused = [&](std::vector<ExportTensor> tensors, Code code, const std::string& text) {
    EXPECT_FAILS(code, text, write_gguf(fs, "/m.gguf", model, tensors));
    EXPECT_EQ(fs.list("/"), std::vector<std::string>{}) << text;
  };
  for (DType type : {DType::q8_0, DType::q4_0}) {
    refused(tensors_as(model.config, type), Code::kInvalidArgument, "'model.layers.0.mlp.down_proj.weight'");
  }
  for (const auto& [type, value] : {std::pair{DType::q4_k, 2e6f}, {DType::q4_0, 6e5f}, {DType::q5_0, 2e6f}}) {
    std::vector<ExportTensor> tensors = tensors_as(model.config, DType::f32);
    tensors[0].dtype = type;
    tensors[0].values = [value = value](std::span<float> out) { std::fill(out.begin(), out.end(), value); };
    refused(tensors, Code::kOutOfRange, "'" + tensors[0].name + "'");
  }
}

}  // namespace
}  // namespace inlaid::formats
