// A model on this machine: configuration, parameters, and what came with it (tokenizer, template, generation defaults).
#ifndef INLAID_SDK_MODELS_MODEL_H_
#define INLAID_SDK_MODELS_MODEL_H_

#include <memory>
#include <string>
#include <vector>

#include "sdk/formats/weight_source.h"
#include "sdk/models/decoder.h"
#include "sdk/nn/parameter.h"
#include "sdk/tensor/runtime.h"
#include "sdk/text/chat_template.h"
#include "sdk/text/tokenizer.h"

namespace inlaid::models {

struct LoadOptions {
  std::string weights_dtype = "f32";        // f32, bf16, f16, as_stored
  std::string tokenizer;                    // folder or tokenizer.json instead of the model's own; "" = the model's
  std::string chat_template;                // source text instead of the model's own; "" = the model's
};

// Immutable but for the values of its parameters, which one trainer at a time may change.
class Model {
 public:
  // Reads a folder or GGUF file. Every stored tensor must be used and every parameter found, with its shape: otherwise
  // kDataLoss naming the tensors. Memory is counted under kWeights.
  static std::shared_ptr<Model> load(std::shared_ptr<Runtime> runtime, const std::string& path, const LoadOptions& options);
  // The same without weights: parameters have shapes and types but no memory. What a plan is made from.
  static std::shared_ptr<Model> outline(std::shared_ptr<Runtime> runtime, const std::string& path, const LoadOptions& options);
  // Random weights (f32) from a config.json, for training from scratch; tokenizer and template from `options`.
  static std::shared_ptr<Model> create(std::shared_ptr<Runtime> runtime, const Json& config, uint64_t seed,
                                       const LoadOptions& options);
  static std::shared_ptr<Model> create_outline(std::shared_ptr<Runtime> runtime, const Json& config,
                                               const LoadOptions& options);

  const std::shared_ptr<Runtime>& runtime() const { return runtime_; }
  const std::shared_ptr<MemoryAccount>& memory() const { return memory_; }
  const DecoderConfig& config() const { return config_; }
  const formats::ModelFiles& files() const { return files_; }  // weights == nullptr
  nn::ParameterSet& parameters() { return parameters_; }
  const nn::ParameterSet& parameters() const { return parameters_; }
  const std::string& weights_dtype() const { return weights_dtype_; }

  // kFailedPrecondition when the model came without.
  std::shared_ptr<const text::Tokenizer> tokenizer() const;
  std::shared_ptr<const text::ChatTemplate> chat_template() const;  // nullptr when there is none
  // Ids that end a turn or a text: eos of generation config, config and tokenizer, and the end-of-turn marker of the template.
  const std::vector<int32_t>& stop_ids() const { return stop_ids_; }
  // The texts of these tokens, the tokenizer's eos first.
  const std::vector<std::string>& stop_tokens() const { return stop_tokens_; }

 private:
  Model() = default;
  static std::shared_ptr<Model> open(std::shared_ptr<Runtime> runtime, const std::string& path, const LoadOptions& options,
                                     bool weights);
  static std::shared_ptr<Model> from_config(std::shared_ptr<Runtime> runtime, const Json& config,
                                            const LoadOptions& options);
  void set_text(const LoadOptions& options);

  std::shared_ptr<Runtime> runtime_;
  std::shared_ptr<MemoryAccount> memory_;
  DecoderConfig config_;
  formats::ModelFiles files_;
  nn::ParameterSet parameters_;
  std::string weights_dtype_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  std::shared_ptr<const text::ChatTemplate> chat_template_;
  std::vector<int32_t> stop_ids_;
  std::vector<std::string> stop_tokens_;
};

// kUnimplemented naming file and tensor for a stored type that no weight can have (integers, f64).
void check_stored_dtype(const formats::StoredTensor& stored);

// How a parameter is held under a weights_dtype: matrices as asked (as_stored: the file's type), vectors always f32.
DType held_dtype(const nn::ParameterSpec& spec, const std::string& weights_dtype, DType stored);

// An adapter on a base model: its own handle, so that several adapters train on one resident base.
class Adapter {
 public:
  static std::shared_ptr<Adapter> create(std::shared_ptr<Model> base, const nn::AdapterConfig& config, uint64_t seed);
  // Without weights, for a plan.
  static std::shared_ptr<Adapter> outline(std::shared_ptr<Model> base, const nn::AdapterConfig& config);
  // Reads a PEFT folder. A key that matches nothing, a missing one, a wrong shape: kDataLoss naming the keys.
  static std::shared_ptr<Adapter> load(std::shared_ptr<Model> base, const std::string& folder);

  const std::shared_ptr<Model>& base() const { return base_; }
  const nn::AdapterConfig& config() const { return config_; }
  const nn::AdapterLayout& layout() const { return layout_; }
  nn::ParameterSet& parameters() { return parameters_; }
  const nn::ParameterSet& parameters() const { return parameters_; }
  const std::shared_ptr<MemoryAccount>& memory() const { return memory_; }

 private:
  Adapter() = default;
  static std::shared_ptr<Adapter> allocate(std::shared_ptr<Model> base, const nn::AdapterConfig& config, bool weights);

  std::shared_ptr<Model> base_;
  std::shared_ptr<MemoryAccount> memory_;
  nn::AdapterConfig config_;
  nn::AdapterLayout layout_;
  nn::ParameterSet parameters_;
};

// Exports. `adapter` may be null. Merged weights are W + scale * B A, computed in f64 and rounded once. dtype is one of f32,
// f16, bf16, for GGUF also q8_0, q4_0, q4_k; vectors stay f32 in GGUF, and rows that q4_k does not fit get another type
// (formats/gguf_types.h), which is logged.
void export_hugging_face(const Model& model, const Adapter* adapter, const std::string& folder, DType dtype,
                         const formats::Certify& certify = nullptr);
void export_gguf(const Model& model, const Adapter* adapter, const std::string& path, DType dtype,
                 const formats::Certify& certify = nullptr);
void export_peft(const Adapter& adapter, const std::string& folder, const formats::Certify& certify = nullptr);

}  // namespace inlaid::models

#endif  // INLAID_SDK_MODELS_MODEL_H_
