// Answers to fixed prompts in the course of a run (logging.sample_prompts), so that people see what training changes.
#ifndef INLAID_SDK_TRAIN_SAMPLES_H_
#define INLAID_SDK_TRAIN_SAMPLES_H_

#include <string>
#include <vector>

#include "sdk/config/config.h"
#include "sdk/train/generator.h"

namespace inlaid::train {

struct SamplePrompts {
  std::vector<std::string> prompts;
  std::vector<std::vector<int32_t>> ids;  // of each prompt, as one user message of a chat if the model has a template
  GenerationOptions options;              // greedy; max_length is what the longest of them needs
};

// What a template is told of the time: the variable `date` = clock (YYYY-MM-DDThh:mm:ss, UTC; "" = now) for one that shows it, else
// nothing, so that the token cache's key does not depend on it.
Json clock_variables(const text::ChatTemplate* chat_template, const std::string& clock);

// The prompts of a configuration; empty when it has none. kFailedPrecondition if the model has no tokenizer; kInvalidArgument
// for a prompt that is too long for the model. `clock` as for open_data.
SamplePrompts sample_prompts(const config::Config& config, const models::Model& model, const std::string& clock);

// The whole answer to one prompt.
std::string answer(Generator& generator, std::span<const int32_t> ids, const std::atomic<bool>* cancel);

}  // namespace inlaid::train

#endif  // INLAID_SDK_TRAIN_SAMPLES_H_
