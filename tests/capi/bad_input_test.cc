// Files and rows that are not what they should be: a clear error that names file, row, key or tensor, nothing leaked, and the
// host goes on.
#include <cstring>
#include <filesystem>
#include <random>

#include "support.h"

namespace capi_test {
namespace {

using Words = std::initializer_list<std::string>;

// A safetensors file taken apart and put together again.
struct Safetensors {
  json header;
  std::string data;
  explicit Safetensors(const std::string& path) {
    const std::string bytes = read_file(path);
    uint64_t size = 0;
    std::memcpy(&size, bytes.data(), sizeof size);
    header = json::parse(bytes.substr(8, size));
    data = bytes.substr(8 + size);
  }
  void write(const std::string& path) const {
    const std::string text = header.dump();
    const uint64_t size = text.size();
    std::string bytes(8, 0);
    std::memcpy(bytes.data(), &size, sizeof size);
    write_file(path, bytes + text + data);
  }
  // The tensor whose bytes stand last.
  std::string last() const {
    std::string name;
    uint64_t end = 0;
    for (const auto& [key, value] : header.items()) {
      if (key == "__metadata__" || value["data_offsets"][1].get<uint64_t>() < end) continue;
      end = value["data_offsets"][1].get<uint64_t>();
      name = key;
    }
    return name;
  }
  void remove_last() {
    const std::string name = last();
    data.resize(header[name]["data_offsets"][0].get<size_t>());
    header.erase(name);
  }
};

class BadInput : public testing::Test {
 protected:
  void SetUp() override {
    const inlaid_allocator vtable = allocator.vtable();
    runtime = make_runtime(1, json::object(), &vtable);
    config = make_config(folder.job(""));
  }
  void TearDown() override {
    config.reset();
    runtime.reset();
    EXPECT_EQ(allocator.live, 0) << "something was leaked";
  }
  // A model folder written by the library, to be damaged.
  std::string export_model(const std::string& name, const char* options) {
    const Model model = make<Model>(inlaid_model_create, runtime.get(), config.get(), nullptr);
    ok(inlaid_model_export(model.get(), nullptr, (folder / name).c_str(), options));
    return folder / name;
  }
  void refuses_model(const std::string& path, inlaid_code code, Words words) {
    EXPECT_FAILS_OUT(inlaid_model, code, words, inlaid_model_load, runtime.get(), path.c_str(), nullptr, nullptr);
  }
  void refuses_job(const json& job, inlaid_code code, Words words) {
    EXPECT_FAILS_OUT(inlaid_job, code, words, inlaid_job_create, runtime.get(), make_config(job).get());
    if (job.contains("output_dir")) {
      EXPECT_FALSE(std::filesystem::exists(job["output_dir"].get<std::string>() + "/job.json"));
    }
  }
  // A job on one file with these lines.
  json job_on(const std::string& lines, const std::string& name = "rows.jsonl") {
    write_file(folder / name, lines);
    json job = folder.job("out");
    job["data"] = {{"train", {{{"path", folder / name}}}}};
    return job;
  }

  CountingAllocator allocator;
  Folder folder;
  Runtime runtime;
  Config config;
};

TEST_F(BadInput, Tensors) {
  const std::string good = export_model("good", nullptr);
  const std::string file = good + "/model.safetensors";
  const Safetensors original(file);

  Safetensors missing = original;
  const std::string gone = missing.last();
  missing.remove_last();
  missing.write(file);
  refuses_model(good, INLAID_DATA_LOSS, {gone});

  Safetensors extra = original;
  extra.header["model.layers.9.surprise.weight"] = {
      {"dtype", "F32"}, {"shape", {2}}, {"data_offsets", {extra.data.size(), extra.data.size() + 8}}};
  extra.data += std::string(8, 0);
  extra.write(file);
  refuses_model(good, INLAID_DATA_LOSS, {"model.layers.9.surprise.weight"});

  Safetensors misshapen = original;
  json& shape = misshapen.header["model.layers.1.self_attn.q_proj.weight"]["shape"];
  shape = {shape[0].get<int>() / 2, shape[1].get<int>() * 2};
  misshapen.write(file);
  refuses_model(good, INLAID_DATA_LOSS, {"model.layers.1.self_attn.q_proj.weight", "shape", "model.safetensors"});

  Safetensors mistyped = original;
  mistyped.header["model.norm.weight"]["dtype"] = "I32";
  mistyped.write(file);
  refuses_model(good, INLAID_UNIMPLEMENTED, {"model.norm.weight", "i32"});

  Safetensors beyond = original;
  beyond.header["model.norm.weight"]["data_offsets"][1] = uint64_t{1} << 62;
  beyond.write(file);
  refuses_model(good, INLAID_DATA_LOSS, {"model.safetensors"});

  original.write(file);
  make<Model>(inlaid_model_load, runtime.get(), good.c_str(), nullptr, nullptr);
}

TEST_F(BadInput, TruncatedAndFlippedModelFiles) {
  const std::string hf = export_model("hf", R"({"dtype": "f16"})") + "/model.safetensors";
  const std::string gguf = export_model("model.gguf", R"({"format": "gguf", "dtype": "f16"})");
  std::mt19937 random(1);
  for (const auto& [file, path] : {std::pair{hf, folder / "hf"}, std::pair{gguf, gguf}}) {
    const std::string bytes = read_file(file);
    for (size_t keep : {size_t{0}, size_t{1}, size_t{7}, size_t{8}, size_t{30}, size_t{200}, bytes.size() / 2, bytes.size() - 1}) {
      write_file(file, bytes.substr(0, keep));
      refuses_model(path, INLAID_DATA_LOSS, {file});
    }
    // A flipped bit is noticed, or it is in a value; either way the host goes on.
    for (int i = 0; i < 150; ++i) {
      std::string flipped = bytes;
      const size_t range = i % 3 == 0 ? bytes.size() : std::min<size_t>(bytes.size(), 3000);
      flipped[random() % range] ^= static_cast<char>(1 << random() % 8);
      write_file(file, flipped);
      inlaid_model* model = nullptr;
      inlaid_error* error = inlaid_model_load(runtime.get(), path.c_str(), nullptr, nullptr, &model);
      EXPECT_NE(error == nullptr, model == nullptr);
      if (error != nullptr) {
        EXPECT_NE(inlaid_error_code(error), INLAID_INTERNAL) << inlaid_error_message(error);
        EXPECT_NE(inlaid_error_code(error), INLAID_UNKNOWN) << inlaid_error_message(error);
      }
      inlaid_error_release(error);
      inlaid_model_release(model);
    }
    write_file(file, bytes);
    make<Model>(inlaid_model_load, runtime.get(), path.c_str(), nullptr, nullptr);
  }
}

TEST_F(BadInput, ConfigOfAModelFolder) {
  const std::string good = export_model("good", nullptr), file = good + "/config.json";
  const std::string text = read_file(file);
  write_file(file, text.substr(0, text.size() / 2));
  refuses_model(good, INLAID_INVALID_ARGUMENT, {"config.json", "line"});
  json changed = json::parse(text);
  changed["model_type"] = "lama";
  write_file(file, changed.dump());
  refuses_model(good, INLAID_UNIMPLEMENTED, {"lama"});
  changed = json::parse(text);
  changed["clip_qkv"] = 8.0;
  write_file(file, changed.dump());
  refuses_model(good, INLAID_UNIMPLEMENTED, {"clip_qkv"});
  std::filesystem::remove(file);
  refuses_model(good, INLAID_NOT_FOUND, {"config.json"});
}

TEST_F(BadInput, Adapters) {
  const Model model = make<Model>(inlaid_model_create, runtime.get(), config.get(), nullptr);
  const Adapter adapter = make<Adapter>(inlaid_adapter_create, model.get(), config.get());
  const std::string peft = folder / "peft", file = peft + "/adapter_model.safetensors";
  ok(inlaid_adapter_save(adapter.get(), peft.c_str()));
  const auto refuses = [&](inlaid_code code, Words words) {
    EXPECT_FAILS_OUT(inlaid_adapter, code, words, inlaid_adapter_load, model.get(), peft.c_str());
  };
  const Safetensors original(file);
  Safetensors missing = original;
  const std::string gone = missing.last();
  missing.remove_last();
  missing.write(file);
  refuses(INLAID_DATA_LOSS, {gone.substr(gone.find("layers"))});
  Safetensors extra = original;
  extra.header["base_model.model.model.layers.7.self_attn.q_proj.lora_A.weight"] = {
      {"dtype", "F32"}, {"shape", {2}}, {"data_offsets", {extra.data.size(), extra.data.size() + 8}}};
  extra.data += std::string(8, 0);
  extra.write(file);
  refuses(INLAID_DATA_LOSS, {"layers.7.self_attn.q_proj.lora_A"});
  original.write(file);
  const std::string settings = read_file(peft + "/adapter_config.json");
  json changed = json::parse(settings);
  changed["r"] = 2;
  write_file(peft + "/adapter_config.json", changed.dump());
  refuses(INLAID_DATA_LOSS, {"lora_"});
  changed["peft_type"] = "LOHA";
  write_file(peft + "/adapter_config.json", changed.dump());
  refuses(INLAID_UNIMPLEMENTED, {"LOHA"});
  write_file(peft + "/adapter_config.json", "{");
  refuses(INLAID_INVALID_ARGUMENT, {"adapter_config.json", "line"});
  write_file(peft + "/adapter_config.json", settings);
  make<Adapter>(inlaid_adapter_load, model.get(), peft.c_str());
}

// Words enough for more than 512 tokens with any vocabulary.
std::string long_text() {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += std::to_string(i * 7919) + " ";
  return text;
}

const char* const kGoodRow =
    R"({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]})" "\n";

TEST_F(BadInput, Rows) {
  const std::string good = kGoodRow;
  refuses_job(job_on(good + "{\"messages\": [\n" + good), INLAID_INVALID_ARGUMENT, {"rows.jsonl", "row 2"});
  refuses_job(job_on(good + good + "[1, 2]\n"), INLAID_INVALID_ARGUMENT, {"rows.jsonl", "row 3"});
  refuses_job(job_on(good + R"({"messages": [{"role": "user", "content": "no answer"}]})" "\n"), INLAID_INVALID_ARGUMENT,
              {"rows.jsonl", "row 2"});
  refuses_job(job_on(good + R"({"messages": [{"role": "user"}, {"role": "assistant", "content": "x"}]})" "\n"),
              INLAID_INVALID_ARGUMENT, {"rows.jsonl", "row 2"});
  refuses_job(job_on(good + "{\"messages\": \"\xff\"}\n"), INLAID_INVALID_ARGUMENT, {"rows.jsonl", "row 2"});
  refuses_job(job_on(""), INLAID_INVALID_ARGUMENT, {"rows.jsonl"});
  refuses_job(job_on(R"({"colour": "red"})" "\n"), INLAID_INVALID_ARGUMENT, {"rows.jsonl", "row 1"});

  const std::string long_row = json({{"messages", {{{"role", "user"}, {"content", "Hi"}},
                                                   {{"role", "assistant"}, {"content", long_text()}}}}})
                                   .dump() + "\n";
  json too_long = job_on(good + long_row);
  refuses_job(too_long, INLAID_INVALID_ARGUMENT, {"rows.jsonl", "row 2", "512"});
  // Refused rows can be listed instead; the report says which and why.
  too_long["data"]["truncation"] = "drop";
  too_long["output_dir"] = folder / "dropping";
  make<Job>(inlaid_job_create, runtime.get(), make_config(too_long).get());
  const json report = json::parse(read_file(folder / "dropping/data_report.json"))["train"];
  EXPECT_EQ(report["used"], 1);
  ASSERT_EQ(report["dropped"].size(), 1u);
  EXPECT_EQ(report["dropped"][0]["row"], 2);

  json listed = job_on(good + "{\n" + good);
  listed["data"]["on_bad_row"] = "list";
  listed["output_dir"] = folder / "listing";
  make<Job>(inlaid_job_create, runtime.get(), make_config(listed).get());
  const json list = json::parse(read_file(folder / "listing/data_report.json"))["train"];
  EXPECT_EQ(list["used"], 2);
  ASSERT_EQ(list["refused"].size(), 1u);
  EXPECT_EQ(list["refused"][0]["row"], 2);
  EXPECT_NE(list["refused"][0]["reason"], "");
}

TEST_F(BadInput, MissingFiles) {
  json job = job_on(kGoodRow);
  job["data"]["train"][0]["path"] = folder / "nowhere*.jsonl";
  refuses_job(job, INLAID_INVALID_ARGUMENT, {"nowhere*.jsonl"});
  job = job_on(kGoodRow);
  job["model"]["tokenizer"] = folder / "no_tokenizer.json";
  refuses_job(job, INLAID_NOT_FOUND, {"no_tokenizer.json"});
  job = job_on(kGoodRow);
  job["data"]["chat_template"] = folder / "no_template.jinja";
  refuses_job(job, INLAID_NOT_FOUND, {"no_template.jinja"});
  job = job_on(kGoodRow);
  job["data"]["chat_template"] = "{% for message in %}";
  EXPECT_TRUE([&] {
    inlaid_job* none = nullptr;
    inlaid_error* error = inlaid_job_create(runtime.get(), make_config(job).get(), &none);
    const bool named = std::string(inlaid_error_message(error)).find("template") != std::string::npos;
    inlaid_error_release(error);
    return named && none == nullptr;
  }());
}

TEST_F(BadInput, TheErrorOfDataSaysSo) {
  inlaid_job* none = nullptr;
  inlaid_error* error = inlaid_job_create(runtime.get(), make_config(job_on("{\n")).get(), &none);
  EXPECT_EQ(json::parse(inlaid_error_details(error))["origin"], "data");
  inlaid_error_release(error);
}

TEST_F(BadInput, SizesThatCannotBe) {
  json job = folder.job("");
  job["model"]["config"]["hidden_size"] = int64_t{1} << 40;
  job["model"]["config"]["head_dim"] = 8;
  EXPECT_TRUE([&] {
    inlaid_model* none = nullptr;
    inlaid_error* error = inlaid_model_create(runtime.get(), make_config(job).get(), nullptr, &none);
    const inlaid_code code = inlaid_error_code(error);
    inlaid_error_release(error);
    return none == nullptr && (code == INLAID_INVALID_ARGUMENT || code == INLAID_RESOURCE_EXHAUSTED);
  }());
  for (const char* key : {"hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "num_key_value_heads"}) {
    for (const json& value : {json(0), json(-1), json(1.5), json("8"), json(nullptr)}) {
      job = folder.job("");
      job["model"]["config"][key] = value;
      if (value.is_null() && std::string(key) == "num_key_value_heads") continue;  // means: as many as heads
      EXPECT_FAILS_OUT(inlaid_model, INLAID_INVALID_ARGUMENT, {key}, inlaid_model_create, runtime.get(),
                       make_config(job).get(), nullptr);
    }
  }
}

TEST_F(BadInput, DamagedCheckpoints) {
  json job = folder.job("out");
  job["train"]["max_steps"] = 2;
  train(runtime.get(), job);
  const std::string checkpoint = folder / "out/checkpoints/step-000002";
  std::mt19937 random(2);
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint)) {
    if (!entry.is_regular_file()) continue;
    const std::string path = entry.path(), name = entry.path().filename(), bytes = read_file(path);
    for (int i = 0; i < 6; ++i) {
      std::string damaged = bytes;
      if (i < 3) {
        damaged.resize(bytes.size() * static_cast<size_t>(i) / 3);
      } else {
        damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
      }
      write_file(path, damaged);
      inlaid_job* resumed = nullptr;
      inlaid_error* error = inlaid_job_resume(runtime.get(), (folder / "out").c_str(), &resumed);
      if (error != nullptr) {
        const std::string message = inlaid_error_message(error);
        EXPECT_EQ(inlaid_error_code(error), INLAID_DATA_LOSS) << name << ": " << message;
        EXPECT_NE(message.find("step-000002"), std::string::npos) << message;
      } else {
        ADD_FAILURE() << name << " (" << i << ") is damaged and was restored";
      }
      inlaid_error_release(error);
      inlaid_job_release(resumed);
    }
    write_file(path, bytes);
  }
  make<Job>(inlaid_job_resume, runtime.get(), (folder / "out").c_str());
}

}  // namespace
}  // namespace capi_test
