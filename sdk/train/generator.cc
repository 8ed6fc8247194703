#include "sdk/train/generator.h"

#include <algorithm>

#include "sdk/base/error.h"
#include "sdk/train/sampling.h"
#include "sdk/train/evaluate.h"

namespace inlaid::train {
namespace {

constexpr int64_t kPrefillRows = 256;  // rows of a prompt that one pass of the model takes

autograd::Program record(const models::Model& model, const nn::Modules& modules, int64_t rows, int64_t capacity) {
  autograd::Recorder recorder({rows, 1}, DType::f32, false);
  const autograd::ValueId hidden = models::record_decoder(recorder, model.config(), modules, {false, capacity});
  const autograd::ValueId logits =
      ops::target_logits(recorder, hidden, models::head_weight(recorder, model.config(), modules));
  return recorder.finish({logits}, model.runtime()->kernels, model.runtime()->pool.threads());
}

}  // namespace

uint64_t GeneratorPrograms::activation_bytes() const {
  return std::max(prefill.activation_bytes, decode.activation_bytes) + static_cast<uint64_t>(cache_slots) * cache_slot_bytes;
}
uint64_t GeneratorPrograms::workspace_bytes() const { return std::max(prefill.workspace_bytes, decode.workspace_bytes); }
uint64_t GeneratorPrograms::data_bytes() const { return BatchBuffers::bytes({std::min(kPrefillRows, capacity), 1}); }

GeneratorPrograms record_generator(const models::Model& model, const nn::Modules& modules, const GenerationOptions& options) {
  const models::DecoderConfig& config = model.config();
  GeneratorPrograms programs;
  programs.capacity = options.max_length > 0 ? options.max_length : std::min<int64_t>(2048, config.max_position_embeddings);
  programs.prefill = record(model, modules, std::min(kPrefillRows, programs.capacity), programs.capacity);
  programs.decode = record(model, modules, 1, programs.capacity);
  const int64_t row_bytes = config.num_key_value_heads * config.head_dim * static_cast<int64_t>(sizeof(float));
  programs.cache_slots = 2 * config.num_hidden_layers;
  programs.cache_slot_bytes = static_cast<uint64_t>((programs.capacity * row_bytes + 63) / 64 * 64);
  return programs;
}

Generator::Generator(std::shared_ptr<models::Model> model, std::shared_ptr<models::Adapter> adapter,
                     const GenerationOptions& options)
    : model_(std::move(model)), adapter_(std::move(adapter)), options_(options) {
  if (adapter_ != nullptr && adapter_->base() != model_) {
    fail(Code::kInvalidArgument, "the adapter belongs to another model");
  }
  memory_ = MemoryAccount::child(model_->runtime()->memory, "generator");
  modules_ = std::make_unique<nn::Modules>(model_->parameters(), adapter_ ? &adapter_->parameters() : nullptr,
                                           adapter_ ? &adapter_->layout() : nullptr, trainable_, 0);
  programs_ = record_generator(*model_, *modules_, options_);
  const uint64_t cache_bytes = static_cast<uint64_t>(programs_.cache_slots) * programs_.cache_slot_bytes;
  activations_ = memory_->allocate(Category::kActivations, programs_.activation_bytes() - cache_bytes, false);
  workspace_ = memory_->allocate(Category::kWorkspace, programs_.workspace_bytes(), false);
  cache_ = memory_->allocate(Category::kActivations, cache_bytes, false);
  for (int64_t slot = 0; slot < programs_.cache_slots; ++slot) {
    caches_.push_back(cache_.data() + static_cast<uint64_t>(slot) * programs_.cache_slot_bytes);
  }
  batch_ = std::make_unique<BatchBuffers>(*memory_, autograd::Capacity{std::min(kPrefillRows, programs_.capacity), 1});
}

void Generator::prompt(std::span<const int32_t> ids) {
  if (ids.empty()) fail(Code::kInvalidArgument, "the prompt has no token");
  for (int32_t id : ids) {
    if (id < 0 || id >= model_->config().vocab_size) {
      fail(Code::kInvalidArgument, "token id ", id, " is outside the vocabulary of ", model_->config().vocab_size);
    }
  }
  if (static_cast<int64_t>(ids.size()) >= programs_.capacity) {
    fail(Code::kInvalidArgument, "the prompt has ", ids.size(), " tokens and leaves no room for an answer in ", programs_.capacity,
         " (max_length)");
  }
  pending_.assign(ids.begin(), ids.end());
  past_ = 0;
  produced_ = 0;
  done_ = options_.max_new_tokens == 0;
  held_.clear();
  text_.clear();
  stream_ = std::make_unique<text::DecodeStream>(model_->tokenizer(), true);
}

Generator::Next Generator::next(const std::atomic<bool>* cancel) {
  if (stream_ == nullptr) fail(Code::kFailedPrecondition, "there is nothing to continue; start a sequence with a prompt");
  if (done_) fail(Code::kOutOfRange, "the sequence has ended; start another one with a prompt");
  while (!pending_.empty()) {
    const int64_t limit = pending_.size() == 1 ? 1 : std::min(kPrefillRows, programs_.capacity);
    const auto count = static_cast<size_t>(std::min<int64_t>(limit, static_cast<int64_t>(pending_.size())));
    const autograd::Program& program = count == 1 ? programs_.decode : programs_.prefill;
    autograd::Binding binding = bind_frozen(program, *modules_);
    binding.activations = activations_.data();
    binding.caches = caches_;
    const autograd::Extents extents = batch_->load_sequence(
        {pending_.data(), count}, past_, past_ + static_cast<int64_t>(pending_.size()));
    batch_->bind(binding);
    Device device = Device::cpu(model_->runtime()->kernels, model_->runtime()->pool.executor(), workspace_.data(),
                                workspace_.size());
    autograd::Replay(program, device, binding, extents, cancel).forward();
    const auto* logits = reinterpret_cast<const float*>(
        activations_.data() + program.offset[static_cast<size_t>(program.root(program.outputs[0]))]);
    logits_ = {logits, static_cast<size_t>(model_->config().vocab_size)};
    past_ += static_cast<int64_t>(count);
    pending_.erase(pending_.begin(), pending_.begin() + static_cast<int64_t>(count));
  }
  const int32_t id = pick();
  ++produced_;
  const std::vector<int32_t>& stops = model_->stop_ids();
  const bool stop = std::find(stops.begin(), stops.end(), id) != stops.end();
  done_ = stop || produced_ >= options_.max_new_tokens || past_ >= programs_.capacity;
  stream(id, stop);
  pending_.push_back(id);
  return {id, done_};
}

int32_t Generator::pick() {
  return sample(logits_, {options_.temperature, options_.top_k, options_.top_p}, options_.seed,
                static_cast<uint64_t>(past_));
}

void Generator::stream(int32_t id, bool stop_token) {
  if (!stop_token) held_ += stream_->push(id);
  if (done_ && !stop_token) held_ += stream_->finish();
  size_t keep = 0;  // longest end of held_ that may begin a stop text
  for (const std::string& stop : options_.stop) {
    const size_t found = held_.find(stop);
    if (found != std::string::npos) {
      held_.resize(found);
      done_ = true;
      keep = 0;
      break;
    }
    for (size_t n = std::min(stop.size() - 1, held_.size()); n > keep; --n) {
      if (held_.ends_with(std::string_view(stop).substr(0, n))) {
        keep = n;
        break;
      }
    }
  }
  if (done_) keep = 0;
  text_ = held_.substr(0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
}

}  // namespace inlaid::train
