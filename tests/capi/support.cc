#include "support.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace capi_test {
namespace {

struct DlTensor {  // DLManagedTensorVersioned as DLPack 1.x lays it out
  uint32_t major, minor;
  void* context;
  void (*deleter)(DlTensor*);
  uint64_t flags;
  void* data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) throw std::runtime_error(std::string(name) + " is not set; use tests/run");
  return value;
}

std::string exact(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%a", value);
  return text;
}

}  // namespace

void ok(inlaid_error* error) {
  if (error == nullptr) return;
  const std::string message = "error " + std::to_string(inlaid_error_code(error)) + ": " + inlaid_error_message(error);
  inlaid_error_release(error);
  throw std::runtime_error(message);
}

testing::AssertionResult fails(inlaid_error* error, inlaid_code code, std::initializer_list<std::string> words) {
  if (error == nullptr) return testing::AssertionFailure() << "no error, expected code " << code;
  const inlaid_code found = inlaid_error_code(error);
  const std::string message = inlaid_error_message(error), details = inlaid_error_details(error);
  inlaid_error_release(error);
  if (found != code) return testing::AssertionFailure() << "code " << found << ", expected " << code << ": " << message;
  if (message.empty() || message.find('\n') != std::string::npos) {
    return testing::AssertionFailure() << "a message is one line: '" << message << "'";
  }
  if (!json::parse(details, nullptr, false).is_object()) return testing::AssertionFailure() << "details: " << details;
  for (const std::string& word : words) {
    if (message.find(word) == std::string::npos) {
      return testing::AssertionFailure() << "'" << word << "' is not in: " << message;
    }
  }
  return testing::AssertionSuccess() << message;
}

Runtime make_runtime(int threads, const json& settings, const inlaid_allocator* allocator) {
  inlaid_runtime_options options = INLAID_RUNTIME_OPTIONS_INIT;
  options.cpu_threads = threads;
  options.host_allocator = allocator;
  const std::string text = settings.dump();
  options.settings_json = text.c_str();
  return make<Runtime>(inlaid_runtime_create, &options);
}

Config make_config(const json& job) { return make<Config>(inlaid_config_parse, job.dump().c_str(), nullptr); }

std::string source_path(const std::string& name) { return environment("INLAID_SOURCE") + "/" + name; }
std::string smollm2_path() { return environment("INLAID_TEST_DATA") + "/SmolLM2-135M-Instruct.Q4_1.gguf"; }

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

Folder::Folder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "capi-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = pattern;
  std::filesystem::create_directory(*this / "tokenizer");
  write_file(*this / "tokenizer/tokenizer.json", read_file(source_path("tests/golden/text/tokenizers/byte_bpe.json")));
  write_file(*this / "tokenizer/tokenizer_config.json", R"({"eos_token": "<|im_end|>"})");
  write_file(*this / "tokenizer/chat_template.jinja", read_file(source_path("tests/golden/text/templates/chatml.jinja")));
  const char* nouns[] = {"lamp", "orchard", "river", "stone", "whisper", "bridge"};
  for (const auto& [name, rows] : {std::pair{"train.jsonl", 24}, std::pair{"eval.jsonl", 5}}) {
    std::string lines;
    for (int i = 0; i < rows; ++i) {
      const std::string noun = nouns[i % 6], more = i % 3 == 0 ? " and so on" : "";
      lines += json({{"messages",
                      {{{"role", "user"}, {"content", "Define " + noun + " " + std::to_string(i)}},
                       {{"role", "assistant"}, {"content", "the " + noun + " of number " + std::to_string(i * 7) + more}}}}})
                   .dump() +
               "\n";
    }
    write_file(*this / name, lines);
  }
}

Folder::~Folder() { std::filesystem::remove_all(path_); }

json Folder::job(const std::string& output, bool lora) const {
  json job;
  job["model"]["config"] = {{"model_type", "llama"},    {"vocab_size", 600},        {"hidden_size", 32},
                            {"intermediate_size", 48},  {"num_hidden_layers", 2},   {"num_attention_heads", 4},
                            {"num_key_value_heads", 2}, {"initializer_range", 0.1}, {"max_position_embeddings", 512},
                            {"tie_word_embeddings", true}};
  job["model"]["tokenizer"] = *this / "tokenizer";
  if (lora) {
    job["adapter"] = {{"peft_type", "LORA"}, {"r", 4}, {"lora_alpha", 8}, {"lora_dropout", 0.1},
                      {"target_modules", "all-linear"}};
  }
  job["data"] = {{"train", {{{"path", *this / "train.jsonl"}}}}, {"eval", {{{"path", *this / "eval.jsonl"}}}}};
  job["train"] = {{"micro_batch_tokens", 256}, {"max_steps", 8}, {"eval_on_start", false}};
  job["optim"] = {{"learning_rate", 0.01}};
  if (!output.empty()) job["output_dir"] = *this / output;
  return job;
}

std::string step_line(const inlaid_event* event) {
  return std::to_string(inlaid_event_step(event)) + " " + exact(inlaid_event_metric(event, "loss")) + " " +
         exact(inlaid_event_metric(event, "grad_norm"));
}

Trained watch(inlaid_run* run) {
  Trained result;
  for (;;) {
    const Event event = make<Event>(inlaid_run_next, run, int64_t{-1});
    const int32_t kind = inlaid_event_kind(event.get());
    if (kind == INLAID_EVENT_STEP) result.steps.push_back(step_line(event.get()));
    if (kind == INLAID_EVENT_STATE) result.states.push_back(inlaid_event_text(event.get()));
    if (kind != INLAID_EVENT_DONE) continue;
    result.end = inlaid_event_text(event.get());
    inlaid_error* error = inlaid_run_join(run, 60000);
    if (result.end == "cancelled") {
      EXPECT_TRUE(fails(error, INLAID_CANCELLED));
    } else {
      ok(error);
    }
    return result;
  }
}

Trained train(inlaid_runtime* runtime, const json& job) {
  const Config config = make_config(job);
  const Job handle = make<Job>(inlaid_job_create, runtime, config.get());
  const RunHandle run = make<RunHandle>(inlaid_job_start, handle.get());
  return watch(run.get());
}

inlaid_error* greedy_tokens(inlaid_model* model, inlaid_adapter* adapter, const std::vector<int32_t>& prompt, int count,
                            std::string* ids) {
  inlaid_generator* raw = nullptr;
  const std::string options = json({{"max_new_tokens", count}}).dump();
  if (inlaid_error* error = inlaid_generator_create(model, adapter, options.c_str(), &raw)) return error;
  const Generator generator(raw);
  if (inlaid_error* error = inlaid_generator_prompt(raw, prompt.data(), prompt.size() * sizeof(int32_t))) return error;
  for (int32_t done = 0; done == 0;) {
    int32_t id = 0;
    inlaid_buffer* piece = nullptr;
    if (inlaid_error* error = inlaid_generator_next(raw, nullptr, &id, &piece, &done)) return error;
    inlaid_buffer_release(piece);
    *ids += std::to_string(id) + " ";
  }
  return nullptr;
}

std::string generate(inlaid_model* model, inlaid_adapter* adapter, const std::vector<int32_t>& prompt, int count) {
  std::string ids;
  ok(greedy_tokens(model, adapter, prompt, count, &ids));
  return ids;
}

std::string weight_bytes(inlaid_model* model) {
  std::string bytes;
  const json described = parsed(inlaid_model_describe, model);
  for (const json& tensor : described["tensors"]) {
    DLManagedTensorVersioned* managed = nullptr;
    ok(inlaid_model_get_tensor(model, tensor["name"].get<std::string>().c_str(), &managed));
    auto* t = reinterpret_cast<DlTensor*>(managed);
    int64_t elements = 1;
    for (int32_t i = 0; i < t->ndim; ++i) elements *= t->shape[i];
    bytes.append(static_cast<const char*>(t->data), static_cast<size_t>(elements) * sizeof(float));
    t->deleter(t);
  }
  return bytes;
}

inlaid_allocator CountingAllocator::vtable() {
  inlaid_allocator allocator = INLAID_ALLOCATOR_INIT;
  allocator.user = this;
  allocator.alloc = [](void* user, uint64_t bytes, uint64_t align) -> void* {
    auto& self = *static_cast<CountingAllocator*>(user);
    if (++self.calls == self.fail_at) return nullptr;
    void* memory = nullptr;
    if (posix_memalign(&memory, std::max<uint64_t>(align, sizeof(void*)), bytes) != 0) return nullptr;
    ++self.live;
    self.live_bytes += static_cast<int64_t>(bytes);
    return memory;
  };
  allocator.free = [](void* user, void* memory, uint64_t bytes) {
    auto& self = *static_cast<CountingAllocator*>(user);
    std::free(memory);
    self.live_bytes -= static_cast<int64_t>(bytes);
    --self.live;  // last: who waits for 0 may end the allocator's life then
  };
  return allocator;
}

std::pair<int, int> start_child(const std::vector<std::string>& arguments) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "capi_child";
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("pipe");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork");
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execv(program.c_str(), argv.data());
    _exit(127);
  }
  close(ends[1]);
  return {child, ends[0]};
}

ChildResult run_child(const std::vector<std::string>& arguments) {
  const auto [child, output] = start_child(arguments);
  ChildResult result{0, ""};
  char bytes[4096];
  for (ssize_t n; (n = read(output, bytes, sizeof bytes)) > 0;) result.output.append(bytes, static_cast<size_t>(n));
  close(output);
  int status = 0;
  waitpid(child, &status, 0);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return result;
}

}  // namespace capi_test
