// What users of other tools have reported, as tests of what they would have needed. Each names the threads that it comes from;
// table.tsv lists these and the reports that other tests of the tree answer.
#include <gtest/gtest.h>

#include <algorithm>
#include <clocale>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>

#include "tests/capi/support.h"

extern char** environ;

namespace reports {
namespace {

using namespace capi_test;

std::vector<std::pair<double, double>> losses_and_norms(inlaid_runtime* runtime, const json& job) {
  const Config config = make_config(job);
  const Job handle = make<Job>(inlaid_job_create, runtime, config.get());
  const RunHandle run = make<RunHandle>(inlaid_job_start, handle.get());
  std::vector<std::pair<double, double>> result;
  for (int32_t kind = 0; kind != INLAID_EVENT_DONE;) {
    const Event event = make<Event>(inlaid_run_next, run.get(), int64_t{-1});
    kind = inlaid_event_kind(event.get());
    if (kind == INLAID_EVENT_STEP) {
      result.emplace_back(inlaid_event_metric(event.get(), "loss"), inlaid_event_metric(event.get(), "grad_norm"));
    }
  }
  ok(inlaid_run_join(run.get(), -1));
  return result;
}

// transformers#34191, #35203, #37766, huggingface/blog#2414, ms-swift#10084: a loss that was averaged per micro-batch, and a
// partial last window whose gradient was too small. Five samples one by one are one micro-batch of five, also at the end of
// an epoch where four are left.
TEST(Reports, D1AccumulationAndItsRaggedLastWindow) {
  const Folder folder;
  const Runtime runtime = make_runtime(2);
  json job = folder.job("");  // 24 rows
  job["adapter"]["lora_dropout"] = 0;
  job["train"] = {{"micro_batch_size", 5}, {"num_train_epochs", 2}, {"eval_on_start", false}};
  const auto whole = losses_and_norms(runtime.get(), job);
  job["train"]["micro_batch_size"] = 1;
  job["train"]["gradient_accumulation_steps"] = 5;
  const auto accumulated = losses_and_norms(runtime.get(), job);
  ASSERT_EQ(whole.size(), 10u);
  ASSERT_EQ(accumulated.size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(accumulated[i].first, whole[i].first, 1e-4 * whole[i].first) << "loss of step " << i + 1;
    EXPECT_NEAR(accumulated[i].second, whole[i].second, 2e-3 * whole[i].second) << "gradient norm of step " << i + 1;
  }
}

// DeepSpeed#3841, #2413: "saved" files of 610 KB, with tensors of shape 0. Every parameter is in the file, with all its bytes.
TEST(Reports, D3SavedFilesHoldEveryElement) {
  const Folder folder;
  const Runtime runtime = make_runtime(1);
  const Config config = make_config(folder.job("", false));
  const Model model = make<Model>(inlaid_model_create, runtime.get(), config.get(), nullptr);
  ok(inlaid_model_export(model.get(), nullptr, (folder / "hf").c_str(), nullptr));
  const std::string file = read_file(folder / "hf/model.safetensors");
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data(), sizeof header_bytes);
  const json header = json::parse(file.substr(8, header_bytes));
  uint64_t end = 0;
  const json described = parsed(inlaid_model_describe, model.get());
  for (const json& tensor : described["tensors"]) {
    const std::string name = tensor["name"];
    ASSERT_TRUE(header.contains(name)) << name;
    EXPECT_EQ(header[name]["shape"], tensor["shape"]) << name;
    uint64_t elements = 1;
    for (const json& size : tensor["shape"]) elements *= size.get<uint64_t>();
    EXPECT_GT(elements, 0u) << name;
    const uint64_t begin = header[name]["data_offsets"][0], stop = header[name]["data_offsets"][1];
    EXPECT_EQ(stop - begin, elements * 4) << name;
    end = std::max(end, stop);
  }
  EXPECT_EQ(file.size(), 8 + header_bytes + end);
}

// unsloth#416, #419, trl#1623, llm-course#33: pad = eos, so that the end of a turn was masked and the model never stopped.
TEST(Reports, D7TheEndOfEveryTurnIsTrained) {
  const Folder folder;
  const Runtime runtime = make_runtime(1);
  const Config config = make_config(folder.job(""));
  const Model model = make<Model>(inlaid_model_create, runtime.get(), config.get(), nullptr);
  const Tokenizer tokenizer = make<Tokenizer>(inlaid_model_tokenizer, model.get());
  const std::string encoded = text(inlaid_tokenizer_encode, tokenizer.get(), "<|im_end|>", uint64_t{10}, 0);
  ASSERT_EQ(encoded.size(), sizeof(int32_t));
  int32_t stop = 0;
  std::memcpy(&stop, encoded.data(), sizeof stop);
  const Dataset data = make<Dataset>(inlaid_dataset_open, model.get(), config.get(), "train");
  for (uint64_t i = 0; i < inlaid_dataset_size(data.get()); ++i) {
    const json sample = parsed(inlaid_dataset_sample, data.get(), i);
    const auto targets = sample["targets"].get<std::vector<int32_t>>();
    EXPECT_EQ(std::count(targets.begin(), targets.end(), stop), 1) << sample;
  }
}

// transformers#14652, #25027, #29015, #29338: the best model of a run with an adapter was not found again, or saves that did not
// fall on evaluations made it impossible.
TEST(Reports, D18TheBestCheckpointOfAnAdapter) {
  const Folder folder;
  const Runtime runtime = make_runtime(2);
  json job = folder.job("out");
  job["train"] = {{"micro_batch_tokens", 256}, {"max_steps", 12}, {"eval_on_start", false}, {"eval_steps", 2}};
  job["optim"] = {{"learning_rate", 0.05}, {"lr_scheduler_type", "constant"}};  // falls, then rises
  job["checkpoint"] = {{"save_steps", 5}, {"save_total_limit", 1}, {"keep_best", 1}};
  const Config config = make_config(job);
  const Job handle = make<Job>(inlaid_job_create, runtime.get(), config.get());
  const RunHandle run = make<RunHandle>(inlaid_job_start, handle.get());
  double best = INFINITY;
  for (int32_t kind = 0; kind != INLAID_EVENT_DONE;) {
    const Event event = make<Event>(inlaid_run_next, run.get(), int64_t{-1});
    kind = inlaid_event_kind(event.get());
    if (kind == INLAID_EVENT_EVAL) best = std::min(best, inlaid_event_metric(event.get(), "eval_loss"));
  }
  ok(inlaid_run_join(run.get(), -1));
  inlaid_model* model = nullptr;
  inlaid_adapter* adapter = nullptr;
  ok(inlaid_result_open(runtime.get(), (folder / "out").c_str(), R"({"checkpoint": "best"})", nullptr, &model, &adapter));
  const Model own_model(model);
  const Adapter own_adapter(adapter);
  ASSERT_NE(adapter, nullptr);
  const Dataset data = make<Dataset>(inlaid_dataset_open, model, config.get(), "eval");
  EXPECT_EQ(inlaid_event_metric(make<Event>(inlaid_evaluate, model, adapter, data.get(), nullptr).get(), "eval_loss"), best);
}

// peft#1300, #1605, #1932, #2415: embeddings that trained beside the adapter were not saved with it.
TEST(Reports, D15ModulesThatTrainInFullAreSavedWithTheAdapter) {
  const Folder folder;
  const Runtime runtime = make_runtime(1);
  json job = folder.job("out");
  job["model"]["config"]["tie_word_embeddings"] = false;
  job["adapter"]["modules_to_save"] = {"embed_tokens", "lm_head"};
  job["train"]["max_steps"] = 3;
  const Config config = make_config(job);
  const Job handle = make<Job>(inlaid_job_create, runtime.get(), config.get());
  watch(make<RunHandle>(inlaid_job_start, handle.get()).get());
  inlaid_model* model = nullptr;
  inlaid_adapter* adapter = nullptr;
  ok(inlaid_job_model(handle.get(), &model, &adapter));
  const Model own_model(model);
  const Adapter own_adapter(adapter);
  const Dataset data = make<Dataset>(inlaid_dataset_open, model, config.get(), "eval");
  const auto loss = [&](inlaid_adapter* a) {
    return inlaid_event_metric(make<Event>(inlaid_evaluate, model, a, data.get(), nullptr).get(), "eval_loss");
  };
  ok(inlaid_adapter_save(adapter, (folder / "peft").c_str()));
  const Adapter again = make<Adapter>(inlaid_adapter_load, model, (folder / "peft").c_str());
  EXPECT_EQ(loss(again.get()), loss(adapter));
  EXPECT_NE(loss(nullptr), loss(adapter));
  const std::string described = text(inlaid_adapter_describe, again.get());
  EXPECT_NE(described.find("embed_tokens"), std::string::npos) << described;
  EXPECT_NE(described.find("lm_head"), std::string::npos) << described;
}

// dmlc/xgboost#2109, #9751, #6010: errors and results in thread-locals, which leak or are gone with the thread that made them.
TEST(Reports, E4ResultsOutliveTheirThreads) {
  const Runtime runtime = make_runtime(1);
  inlaid_error* error = nullptr;
  inlaid_buffer* buffer = nullptr;
  std::thread([&] {
    inlaid_model* none = nullptr;
    error = inlaid_model_load(runtime.get(), "/there is no such model", nullptr, nullptr, &none);
    ok(inlaid_runtime_describe(runtime.get(), &buffer));
  }).join();
  std::thread([&] {
    inlaid_config* none = nullptr;
    inlaid_error_release(inlaid_config_parse("{", nullptr, &none));  // another error on another thread
  }).join();
  const Buffer owned(buffer);
  EXPECT_NE(std::string(static_cast<const char*>(inlaid_buffer_data(buffer))).find("\"kernels\""), std::string::npos);
  EXPECT_TRUE(fails(error, INLAID_NOT_FOUND, {"/there is no such model"}));
}

// openucx/ucx#3337, tokiwa-software/fuzion#6129, HAMi-core#160: a library that installs signal handlers takes the JVM with it.
// Nor does it touch what else belongs to the process: mask, locale, environment, working folder.
TEST(Reports, E9TheProcessStaysTheHosts) {
  const auto state = [] {
    std::string text;
    for (int number = 1; number < 65; ++number) {
      struct sigaction action {};
      if (sigaction(number, nullptr, &action) != 0) continue;
      text += std::to_string(number) + ":" + std::to_string(reinterpret_cast<uintptr_t>(action.sa_handler)) + "/" +
              std::to_string(action.sa_flags) + " ";
    }
    sigset_t mask;
    sigemptyset(&mask);
    pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    for (int number = 1; number < 65; ++number) text += sigismember(&mask, number) == 1 ? '1' : '0';
    text += std::string(" ") + std::setlocale(LC_ALL, nullptr) + " " + std::filesystem::current_path().string();
    for (char** variable = environ; *variable != nullptr; ++variable) text += std::string(" ") + *variable;
    return text;
  };
  const std::string before = state();
  {
    const Folder folder;
    const Runtime runtime = make_runtime(3);
    EXPECT_EQ(train(runtime.get(), folder.job("out")).steps.size(), 8u);
    EXPECT_EQ(state(), before) << "while the library is at work";
  }
  EXPECT_EQ(state(), before);
}

// transformers#16802, Samudra#87, PraisonAI#4492: memory that a trainer does not give back, and no second trainer in a process.
TEST(Reports, D12ATrainerGivesItsMemoryBack) {
  const Folder folder;
  CountingAllocator allocator;
  const inlaid_allocator vtable = allocator.vtable();
  const Runtime runtime = make_runtime(1, json::object(), &vtable);
  const Config config = make_config(folder.job(""));
  const Model model = make<Model>(inlaid_model_create, runtime.get(), config.get(), nullptr);
  const int64_t resident = allocator.live_bytes;
  for (int i = 0; i < 3; ++i) {
    const Adapter adapter = make<Adapter>(inlaid_adapter_create, model.get(), config.get());
    const Dataset data = make<Dataset>(inlaid_dataset_open, model.get(), config.get(), "train");
    const Trainer first = make<Trainer>(inlaid_trainer_create, model.get(), adapter.get(), config.get());
    const Adapter other = make<Adapter>(inlaid_adapter_create, model.get(), config.get());
    const Trainer second = make<Trainer>(inlaid_trainer_create, model.get(), other.get(), config.get());
    for (inlaid_trainer* trainer : {first.get(), second.get()}) {
      ok(inlaid_trainer_set_dataset(trainer, data.get()));
      make<Event>(inlaid_trainer_step, trainer, nullptr);
    }
    EXPECT_GT(allocator.live_bytes, resident);
  }
  EXPECT_EQ(allocator.live_bytes, resident) << "only the model is left";
}

}  // namespace
}  // namespace reports
