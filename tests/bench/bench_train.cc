// Inlaid's side of the comparison with PyTorch: training steps on a fixed token file through the C API.
//
//   bench_train --model GGUF --tokens FILE --batch 4 --length 256 --steps 6 --mode full|lora --lr 1e-5 --threads 2
//
// Prints one JSON line: the loss of every step (mean over B * (L - 1) targets), tokens per second of every step, and the peak of
// the process's resident memory while it trained.
#include <inlaid.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace {

void check(inlaid_error *error) {
  if (error == nullptr) return;
  std::fprintf(stderr, "bench_train: %s\n", inlaid_error_message(error));
  std::exit(1);
}

std::vector<int32_t> read_ids(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<int32_t> ids(bytes.size() / sizeof(int32_t));
  std::memcpy(ids.data(), bytes.data(), ids.size() * sizeof(int32_t));
  return ids;
}

// Peak resident bytes since the last reset.
long peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::atol(line.c_str() + 6) * 1024;
  }
  return 0;
}

}  // namespace

int main(int argc, char **argv) {
  std::map<std::string, std::string> option = {{"--batch", "4"}, {"--length", "256"}, {"--steps", "6"}, {"--mode", "full"},
                                               {"--lr", "1e-5"}, {"--threads", "2"}};
  for (int i = 1; i + 1 < argc; i += 2) option[argv[i]] = argv[i + 1];
  const auto number = [&](const char *name) { return std::atoi(option[name].c_str()); };
  const int batch = number("--batch"), length = number("--length"), steps = number("--steps");
  const bool lora = option["--mode"] == "lora";
  const std::vector<int32_t> ids = read_ids(option["--tokens"]);
  const size_t per_step = static_cast<size_t>(batch) * static_cast<size_t>(length);
  if (ids.size() < per_step * static_cast<size_t>(steps)) {
    std::fprintf(stderr, "bench_train: %s has %zu ids, needed are %zu\n", option["--tokens"].c_str(), ids.size(),
                 per_step * static_cast<size_t>(steps));
    return 1;
  }

  inlaid_runtime_options options = INLAID_RUNTIME_OPTIONS_INIT;
  options.cpu_threads = number("--threads");
  inlaid_runtime *runtime = nullptr;
  check(inlaid_runtime_create(&options, &runtime));
  const std::string json =
      R"({"model": {"path": ")" + option["--model"] + R"("}, "train": {"max_steps": )" + std::to_string(steps) +
      R"(, "micro_batch_tokens": )" + std::to_string(per_step) + R"(}, "optim": {"learning_rate": )" + option["--lr"] +
      R"(, "lr_scheduler_type": "constant", "max_grad_norm": 0, "weight_decay": 0})" +
      (lora ? R"(, "adapter": {"peft_type": "LORA", "r": 16, "lora_alpha": 32, "lora_dropout": 0, "target_modules": "all-linear"})"
            : "") +
      "}";
  inlaid_config *config = nullptr;
  check(inlaid_config_parse(json.c_str(), nullptr, &config));
  inlaid_model *model = nullptr;
  check(inlaid_model_load(runtime, option["--model"].c_str(), nullptr, nullptr, &model));
  inlaid_adapter *adapter = nullptr;
  if (lora) check(inlaid_adapter_create(model, config, &adapter));
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak starts from here
  inlaid_trainer *trainer = nullptr;
  check(inlaid_trainer_create(model, adapter, config, &trainer));

  std::string losses, speeds;
  for (int step = 0; step < steps; ++step) {
    const int32_t *tokens = ids.data() + per_step * static_cast<size_t>(step);
    std::vector<int32_t> targets(per_step, -100), boundaries = {0};
    for (int row = 0; row < batch; ++row) {
      for (int i = 0; i + 1 < length; ++i) targets[static_cast<size_t>(row * length + i)] = tokens[row * length + i + 1];
      boundaries.push_back((row + 1) * length);
    }
    inlaid_batch *micro_batch = nullptr;
    check(inlaid_batch_create(&micro_batch));
    check(inlaid_batch_add_int32(micro_batch, "tokens", tokens, per_step * sizeof(int32_t)));
    check(inlaid_batch_add_int32(micro_batch, "targets", targets.data(), per_step * sizeof(int32_t)));
    check(inlaid_batch_add_int32(micro_batch, "cu_seqlens", boundaries.data(), boundaries.size() * sizeof(int32_t)));
    const auto begin = std::chrono::steady_clock::now();
    inlaid_event *event = nullptr;
    check(inlaid_trainer_accumulate(trainer, micro_batch, nullptr, &event));
    inlaid_event_release(event);
    check(inlaid_trainer_apply(trainer, &event));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    char text[64];
    std::snprintf(text, sizeof text, "%s%.9g", step ? ", " : "", inlaid_event_metric(event, "loss"));
    losses += text;
    std::snprintf(text, sizeof text, "%s%.2f", step ? ", " : "", static_cast<double>(per_step) / seconds);
    speeds += text;
    inlaid_event_release(event);
    inlaid_batch_release(micro_batch);
  }
  std::printf("{\"losses\": [%s], \"tokens_per_second\": [%s], \"peak_rss_bytes\": %ld}\n", losses.c_str(), speeds.c_str(),
              peak_bytes());
  inlaid_trainer_release(trainer);
  inlaid_adapter_release(adapter);
  inlaid_model_release(model);
  inlaid_config_release(config);
  inlaid_runtime_release(runtime);
  return 0;
}
