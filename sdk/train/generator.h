// Text generation with a key/value cache, for checking the result of training (this is no inference server).
#ifndef INLAID_SDK_TRAIN_GENERATOR_H_
#define INLAID_SDK_TRAIN_GENERATOR_H_

#include <atomic>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "sdk/autograd/replay.h"
#include "sdk/models/model.h"
#include "sdk/train/batch_buffers.h"

namespace inlaid::train {

struct GenerationOptions {
  int64_t max_new_tokens = 128;
  int64_t max_length = 0;      // prompt and answer together; 0 = the model's max_position_embeddings, at most 2048
  double temperature = 0;      // 0 = greedy
  int64_t top_k = 0;           // 0 = all
  double top_p = 1.0;
  uint64_t seed = 42;
  std::vector<std::string> stop;  // texts that end the answer (not part of it)
  // Strict reading of a JSON object with these keys; kInvalidArgument naming key and nearest key.
  static GenerationOptions parse(std::string_view json);
};

// What a generator replays and what it takes, before anything is allocated: `plan` reports it, Generator allocates it.
struct GeneratorPrograms {
  int64_t capacity = 0;                // tokens of prompt and answer together
  autograd::Program prefill, decode;   // some rows of a prompt; one row
  int64_t cache_slots = 0;             // keys and values of every layer
  uint64_t cache_slot_bytes = 0;
  uint64_t activation_bytes() const;   // the cache included
  uint64_t workspace_bytes() const;
  uint64_t data_bytes() const;
};
GeneratorPrograms record_generator(const models::Model& model, const nn::Modules& modules, const GenerationOptions& options);

class Generator {
 public:
  Generator(std::shared_ptr<models::Model> model, std::shared_ptr<models::Adapter> adapter, const GenerationOptions& options);

  // Starts a new sequence. kInvalidArgument for no ids, ids outside the vocabulary, or a prompt that leaves no room.
  void prompt(std::span<const int32_t> ids);
  struct Next {
    int32_t id;
    bool done;  // this was the last token: a stop token, a stop text, or a limit
  };
  // Runs the model once and picks a token. kOutOfRange after the last one.
  Next next(const std::atomic<bool>* cancel);
  // Text that became final with the last next(); stop tokens and stop texts are left out.
  const std::string& text() const { return text_; }
  // Logits [vocabulary] of the position before the token that next() returned, valid until the next call.
  std::span<const float> logits() const { return logits_; }

 private:
  int32_t pick();
  void stream(int32_t id, bool last);

  std::shared_ptr<models::Model> model_;
  std::shared_ptr<models::Adapter> adapter_;
  GenerationOptions options_;
  std::shared_ptr<MemoryAccount> memory_;
  std::set<std::string> trainable_;  // none
  std::unique_ptr<nn::Modules> modules_;
  GeneratorPrograms programs_;
  Block activations_, workspace_, cache_;
  std::unique_ptr<BatchBuffers> batch_;
  std::vector<void*> caches_;

  std::vector<int32_t> pending_;  // ids that the model has not seen yet
  int64_t past_ = 0;
  int64_t produced_ = 0;
  bool done_ = false;
  std::span<const float> logits_;
  std::unique_ptr<text::DecodeStream> stream_;
  std::string held_, text_;       // held_: text that may turn out to be the beginning of a stop text
};

}  // namespace inlaid::train

#endif  // INLAID_SDK_TRAIN_GENERATOR_H_
