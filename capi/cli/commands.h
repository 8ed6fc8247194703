// The commands of the program; each returns an exit code or throws Failure.
#ifndef INLAID_CAPI_CLI_COMMANDS_H_
#define INLAID_CAPI_CLI_COMMANDS_H_

#include <optional>
#include <string>
#include <vector>

#include "api.h"

namespace inlaid_cli {

struct Common : RuntimeOptions {
  bool json = false;
};

struct TrainOptions {
  std::string job;     // JSON file, or the options below
  std::string record;  // instead: output folder of a job, for the configuration in its job.json
  std::string model, output;
  std::vector<std::string> data, eval;
  std::vector<std::string> set;  // "optim.learning_rate=1e-4"
  bool full = false;             // train all weights instead of a LoRA adapter
};
int train(const Common &common, const TrainOptions &options);
int resume(const Common &common, const std::string &output);
int plan(const Common &common, const TrainOptions &options);
int check_data(const Common &common, const TrainOptions &options, int64_t show);

struct ChatOptions {
  std::string path, system, generation, weights_dtype;
  std::optional<std::string> prompt;  // none: a conversation
  bool best = false;
};
int chat(const Common &common, const ChatOptions &options);

struct EvalOptions {
  std::string path, weights_dtype;
  std::vector<std::string> data, set;
  bool best = false;
};
int evaluate(const Common &common, const EvalOptions &options);

struct ExportOptions {
  std::string path, to, format, dtype;
  bool best = false, certificate = true;
};
// The format of `to` by its name: *.gguf, else a Hugging Face folder.
int convert(const Common &common, ExportOptions options);
int export_result(const Common &common, const ExportOptions &options);

int describe(const Common &common, const std::string &path);
int verify(const Common &common, const std::string &path);
int jobs(const Common &common, const std::string &folder);
int report(const Common &common, const std::string &path, const std::string &to);
int schema();

// The configuration of a job file or of command-line options.
Config job_config(const TrainOptions &options);

}  // namespace inlaid_cli

#endif  // INLAID_CAPI_CLI_COMMANDS_H_
