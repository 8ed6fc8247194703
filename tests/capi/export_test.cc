// GGUF exports in every type: loaded again, as f32 and as stored, the model is as good as it was.
#include <cmath>
#include <map>

#include "support.h"

namespace capi_test {
namespace {

// Rows of 256 that blocks of 256 fit, and of 64 (MLP) that they do not.
json job_of_long_rows(const Folder& folder) {
  json job = folder.job("", false);
  job["model"]["config"]["hidden_size"] = 256;
  job["model"]["config"]["intermediate_size"] = 64;
  job["optim"]["learning_rate"] = 0.002;
  job["train"]["max_steps"] = 12;
  return job;
}

double loss_of(inlaid_model* model, const inlaid_config* config) {
  const Dataset data = make<Dataset>(inlaid_dataset_open, model, config, "eval");
  const Event event = make<Event>(inlaid_evaluate, model, static_cast<inlaid_adapter*>(nullptr), data.get(),
                                  static_cast<inlaid_cancel*>(nullptr));
  return inlaid_event_metric(event.get(), "eval_loss");
}

std::map<std::string, int> types_of(inlaid_model* model) {
  std::map<std::string, int> types;
  const json described = parsed(inlaid_model_describe, model);
  for (const json& tensor : described["tensors"]) ++types[tensor["dtype"]];
  return types;
}

class Export : public testing::Test {
 protected:
  Export() {
    inlaid_log_sink sink = INLAID_LOG_SINK_INIT;
    sink.user = &log_;
    sink.write = [](void* user, int32_t level, const char*, const char* utf8, uint64_t size) {
      if (level >= INLAID_LOG_WARNING) *static_cast<std::string*>(user) += std::string(utf8, size) + "\n";
    };
    inlaid_runtime_options options = INLAID_RUNTIME_OPTIONS_INIT;
    options.cpu_threads = 2;
    options.log_sink = &sink;
    runtime_ = make<Runtime>(inlaid_runtime_create, &options);
    config_ = make_config(job_of_long_rows(folder_));
    model_ = make<Model>(inlaid_model_create, runtime_.get(), config_.get(), nullptr);
    const Trainer trainer =
        make<Trainer>(inlaid_trainer_create, model_.get(), static_cast<inlaid_adapter*>(nullptr), config_.get());
    const Dataset data = make<Dataset>(inlaid_dataset_open, model_.get(), config_.get(), "train");
    ok(inlaid_trainer_set_dataset(trainer.get(), data.get()));
    untrained_ = loss_of(model_.get(), config_.get());
    watch(make<RunHandle>(inlaid_run_start, trainer.get(), nullptr, nullptr).get());
    trained_ = loss_of(model_.get(), config_.get());
  }
  Model load(const std::string& path, const char* weights) {
    const std::string options = json({{"weights_dtype", weights}}).dump();
    return make<Model>(inlaid_model_load, runtime_.get(), path.c_str(), options.c_str(), nullptr);
  }
  std::string export_as(const std::string& dtype) {
    const std::string path = folder_ / (dtype + ".gguf");
    ok(inlaid_model_export(model_.get(), nullptr, path.c_str(), json({{"format", "gguf"}, {"dtype", dtype}}).dump().c_str()));
    return path;
  }

  Folder folder_;
  std::string log_;
  Runtime runtime_;
  Config config_;
  Model model_;
  double untrained_ = 0, trained_ = 0;
};

TEST_F(Export, KeepsTheLossInEveryType) {
  ASSERT_LT(trained_, untrained_ - 1) << "training must leave something to lose";
  // On a loss of about 0.57. Measured: f16 3e-6, bf16 7e-5, q8_0 6e-4, q4_0 0.060, q4_k 0.015.
  const std::pair<const char*, double> bounds[] = {{"f32", 0},     {"f16", 1e-4}, {"bf16", 1e-3},
                                                   {"q8_0", 5e-3}, {"q4_0", 0.12}, {"q4_k", 0.04}};
  for (const auto& [dtype, bound] : bounds) {
    const std::string path = export_as(dtype);
    const Model wide = load(path, "f32"), stored = load(path, "as_stored");
    const double loss = loss_of(wide.get(), config_.get());
    EXPECT_LE(std::fabs(loss - trained_), bound) << dtype;
    EXPECT_EQ(loss_of(stored.get(), config_.get()), loss) << dtype << ": holding blocks changes no bit";
    EXPECT_EQ(loss == trained_, bound == 0) << dtype;
  }
}

// Which tensors blocks of 256 do not fit is said, and only then.
TEST_F(Export, SaysWhatIsStoredInAnotherType) {
  for (const char* dtype : {"f32", "f16", "q8_0", "q4_0"}) export_as(dtype);
  EXPECT_EQ(log_, "");
  const Model stored = load(export_as("q4_k"), "as_stored");
  EXPECT_NE(log_.find("q4_k.gguf: 2 tensors are stored as q5_0"), std::string::npos) << log_;
  EXPECT_NE(log_.find("blocks of 256 values of q4_k"), std::string::npos) << log_;
  const std::map<std::string, int> expected = {{"f32", 5}, {"q4_k", 13}, {"q5_0", 2}};
  EXPECT_EQ(types_of(stored.get()), expected);
}

// A LoRA on frozen blocks takes the steps that it takes on the same weights in f32.
TEST_F(Export, TrainsOnStoredBlocks) {
  const std::string path = export_as("q4_k");
  std::vector<std::string> steps[2];
  for (int i = 0; i < 2; ++i) {
    json job = folder_.job("");
    job["model"] = {{"path", path}, {"weights_dtype", i == 0 ? "f32" : "as_stored"}};
    steps[i] = train(runtime_.get(), job).steps;
  }
  ASSERT_EQ(steps[0].size(), 8u);
  EXPECT_EQ(steps[1], steps[0]);
}

TEST_F(Export, NamesTheTypesThatThereAre) {
  const std::string target = folder_ / "no";
  for (const char* dtype : {"q4_2", "q5_0", "q6_k", "Q4_K", "i32", ""}) {
    const std::string options = json({{"format", "gguf"}, {"dtype", dtype}}).dump();
    EXPECT_TRUE(fails(inlaid_model_export(model_.get(), nullptr, target.c_str(), options.c_str()), INLAID_INVALID_ARGUMENT,
                      {dtype, "gguf; f32, bf16, f16, q8_0, q4_0, q4_k can"}))
        << dtype;
  }
  EXPECT_TRUE(fails(inlaid_model_export(model_.get(), nullptr, target.c_str(), R"({"dtype": "q4_k"})"), INLAID_INVALID_ARGUMENT,
                    {"huggingface; f32, bf16, f16 can"}));
}

// Every export says how near it comes, on its own files and on the data that it is given.
TEST_F(Export, CarriesItsCertificate) {
  const json data = {{"eval", folder_.job("")["data"]["eval"]}, {"max_length", folder_.job("")["data"]["max_length"]}};
  for (const char* format : {"huggingface", "gguf"}) {
    const std::string path = folder_ / format;
    const json options = {{"format", format}, {"dtype", "f16"}, {"data", data}};
    ok(inlaid_model_export(model_.get(), nullptr, path.c_str(), options.dump().c_str()));
    const json certificate = parsed(inlaid_export_certificate, runtime_.get(), path.c_str());
    EXPECT_EQ(certificate["format"], format);
    EXPECT_EQ(certificate["dtype"], "f16");
    EXPECT_GT(certificate["logits"]["max_abs_difference"], 0.0);
    EXPECT_LT(certificate["logits"]["max_abs_difference"], 0.05);
    EXPECT_EQ(certificate["held_out"]["loss"], trained_);
    const Model again = load(path, "as_stored");
    EXPECT_EQ(certificate["held_out"]["loss_exported"], loss_of(again.get(), config_.get()));
    EXPECT_EQ(certificate["tokenizer"]["equal"], true);
  }
  const std::string plain = folder_ / "plain";
  ok(inlaid_model_export(model_.get(), nullptr, plain.c_str(), R"({"certificate": false})"));
  EXPECT_FAILS_OUT(inlaid_buffer, INLAID_NOT_FOUND, {"plain"}, inlaid_export_certificate, runtime_.get(), plain.c_str());
  const std::string nowhere = folder_ / "nowhere";
  EXPECT_FAILS_OUT(inlaid_buffer, INLAID_NOT_FOUND, {"nowhere"}, inlaid_export_certificate, runtime_.get(), nowhere.c_str());
  EXPECT_TRUE(fails(inlaid_model_export(model_.get(), nullptr, nowhere.c_str(), R"({"data": {"eval": [{"path": "none.jsonl"}]}})"),
                    INLAID_INVALID_ARGUMENT, {"none.jsonl"}));
  EXPECT_TRUE(fails(inlaid_model_export(model_.get(), nullptr, nowhere.c_str(), R"({"data": {"evil": 1}})"), INLAID_INVALID_ARGUMENT,
                    {"data.evil"}));
}

}  // namespace
}  // namespace capi_test
