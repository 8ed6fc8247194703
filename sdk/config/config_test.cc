#include "sdk/config/config.h"

#include <gtest/gtest.h>

#include "sdk/base/error.h"
#include "sdk/config/table.h"

namespace inlaid::config {
namespace {

// The error of a document, or code kOk.
Error refusal(std::string_view json) {
  try {
    Config::parse(json);
  } catch (const Error& error) {
    return error;
  }
  return Error(Code::kOk, "accepted");
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// `json` is refused with `code` and a message that has every part.
void expect_refused(std::string_view json, Code code, const std::vector<std::string>& parts) {
  const Error error = refusal(json);
  EXPECT_EQ(error.code(), code) << json << ": " << error.message();
  for (const std::string& part : parts)
    EXPECT_TRUE(has(error.message(), part)) << json << ": " << error.message();
}

void expect_wrong(std::string_view json, const std::vector<std::string>& parts) {
  expect_refused(json, Code::kInvalidArgument, parts);
}

TEST(Config, DefaultsAreThoseOfTheReference) {
  const Config c = Config::parse("{}");
  EXPECT_EQ(c.text("model.weights_dtype"), "f32");
  EXPECT_EQ(c.text("model.recompute"), "auto");
  EXPECT_FALSE(c.has("adapter.peft_type"));
  EXPECT_EQ(c.text("data.loss_on"), "assistant");
  EXPECT_EQ(c.text("data.truncation"), "error");
  EXPECT_EQ(c.text("data.on_bad_row"), "error");
  EXPECT_EQ(c.number("data.eval_fraction"), 0.0);
  EXPECT_TRUE(c.flag("data.packing"));
  EXPECT_TRUE(c.flag("data.shuffle"));
  EXPECT_EQ(c.optional_integer("data.max_length"), std::nullopt);
  EXPECT_EQ(c.integer("train.seed"), 42);
  EXPECT_EQ(c.number("train.num_train_epochs"), 1.0);
  EXPECT_EQ(c.optional_integer("train.max_steps"), std::nullopt);
  EXPECT_EQ(c.integer("train.micro_batch_tokens"), 1024);
  EXPECT_EQ(c.integer("train.gradient_accumulation_steps"), 1);
  EXPECT_EQ(c.optional_integer("train.eval_steps"), std::nullopt);
  EXPECT_TRUE(c.flag("train.eval_on_start"));
  EXPECT_EQ(c.text("train.metric_for_best_model"), "eval_loss");
  EXPECT_EQ(c.text("optim.name"), "adamw");
  EXPECT_EQ(c.number("optim.learning_rate"), 5e-5);
  EXPECT_EQ(c.number("optim.weight_decay"), 0.0);
  EXPECT_EQ(c.number("optim.adam_beta1"), 0.9);
  EXPECT_EQ(c.number("optim.adam_beta2"), 0.999);
  EXPECT_EQ(c.number("optim.adam_epsilon"), 1e-8);
  EXPECT_EQ(c.number("optim.max_grad_norm"), 1.0);
  EXPECT_EQ(c.text("optim.lr_scheduler_type"), "linear");
  EXPECT_EQ(c.integer("optim.warmup_steps"), 0);
  EXPECT_EQ(c.integer("checkpoint.save_total_limit"), 3);
  EXPECT_EQ(c.integer("logging.logging_steps"), 1);
  EXPECT_EQ(to_text(c.value("logging.writers")), "[\"jsonl\",\"html\"]");
  EXPECT_EQ(c.text("runtime.devices"), "auto");
  EXPECT_EQ(c.optional_number("runtime.wall_time_limit"), std::nullopt);
  EXPECT_EQ(c.optional_integer("runtime.disk_limit"), std::nullopt);
  EXPECT_FALSE(c.flag("runtime.zero_memory"));

  const Config lora = Config::parse(R"({"adapter":{"peft_type":"LORA"}})");
  EXPECT_EQ(lora.number("optim.learning_rate"), 2e-4);
  EXPECT_EQ(lora.integer("adapter.r"), 8);
  EXPECT_EQ(lora.number("adapter.lora_alpha"), 8.0);
  EXPECT_EQ(lora.number("adapter.lora_dropout"), 0.0);
  EXPECT_FALSE(lora.flag("adapter.use_rslora"));
  EXPECT_EQ(lora.text("adapter.bias"), "none");
  EXPECT_EQ(lora.value("adapter.init_lora_weights"), true);
}

// Every key of config.md, with a value that differs from its default where this build supports one.
constexpr std::string_view kFull = R"({
  "model": {"path": "m", "tokenizer": "t", "weights_dtype": "bf16", "recompute": "full"},
  "adapter": {"peft_type": "LORA", "r": 16, "lora_alpha": 32, "lora_dropout": 0.05,
              "target_modules": ["q_proj", "v_proj"], "exclude_modules": ["lm_head"], "use_rslora": true,
              "use_dora": false, "modules_to_save": ["lm_head"], "bias": "none",
              "init_lora_weights": "gaussian", "rank_pattern": {"q_proj": 4},
              "alpha_pattern": {"q_proj": 4.5}},
  "data": {"train": [{"path": "a/*.jsonl", "format": "chat", "columns": {"messages": "dialogue"}, "weight": 1,
                      "limit": 10},
                     {"path": "/abs/b.jsonl"}],
           "eval_fraction": 0.1, "chat_template": "{{ x }}", "loss_on": "all", "max_length": 512,
           "truncation": "right", "shuffle": false, "on_bad_row": "list", "cache_dir": "c"},
  "train": {"seed": 7, "max_steps": 10, "micro_batch_tokens": 512, "global_batch_tokens": 2048,
            "eval_steps": 5, "eval_on_start": false, "metric_for_best_model": "eval_loss"},
  "optim": {"name": "adamw", "learning_rate": 0.001, "weight_decay": 0.01, "adam_beta1": 0.8,
            "adam_beta2": 0.95, "adam_epsilon": 1e-6, "max_grad_norm": 0.5, "warmup_steps": 3,
            "lr_scheduler_type": "cosine_with_min_lr", "lr_scheduler_kwargs": {"min_lr": 1e-5},
            "state_dtype": "f32"},
  "precision": {"mode": "f32", "fp8": {}},
  "parallel": {"tensor": 1, "pipeline": 1, "context": 1, "expert": 1, "expert_tensor": 1, "data": 1,
               "zero_stage": 0, "offload": "none", "schedule": "1f1b", "virtual_stages": 1,
               "stage_split": "auto", "deterministic_reduction": true},
  "checkpoint": {"save_steps": 4, "save_total_limit": 2, "async": false, "staging_bytes": 268435456},
  "logging": {"logging_steps": 2, "writers": ["jsonl"]},
  "runtime": {"cpu_threads": 2, "memory_limit": 1000000000, "disk_limit": 2000000000, "zero_memory": true,
              "devices": "cpu", "wall_time_limit": 60},
  "output_dir": "out"
})";

TEST(Config, CanonicalDocumentIsStable) {
  for (std::string_view json :
       {std::string_view("{}"), kFull, std::string_view(R"({"train":{"micro_batch_size":4}})"),
        std::string_view(R"({"train":{"max_steps":4}})"), std::string_view(R"({"adapter":{"path":"/a"}})"),
        std::string_view(R"({"train":{"micro_batch_size":4,"global_batch_size":12}})"),
        std::string_view(R"({"data":{"cache_dir":""}})")}) {
    const std::string canonical = Config::parse(json).to_json();
    EXPECT_EQ(Config::parse(canonical).to_json(), canonical);
  }
  EXPECT_EQ(
      Config::parse(R"({"train":{"seed":1,"max_steps":2},"optim":{"weight_decay":1}})").to_json(),
      Config::parse(R"({"optim":{"weight_decay":1.0},"train":{"max_steps":2.0,"seed":1,"eval_steps":null}})")
          .to_json());
  EXPECT_NE(Config::parse("{}").to_json(), Config::parse(R"({"train":{"seed":1}})").to_json());
}

TEST(Config, EveryKeyIsAcceptedAndKept) {
  const Config c = Config::parse(kFull, "/job");
  const Json given = parse_json(kFull, "full");
  for (const Key& key : table()) {
    if (key.path == "adapter.path" || key.path == "data.eval" || key.path == "model.config")
      continue;  // exclude others
    EXPECT_EQ(c.has(key.path), !c.value(key.path).is_null());
  }
  EXPECT_EQ(c.text("model.path"), "/job/m");
  EXPECT_EQ(c.text("model.tokenizer"), "/job/t");
  EXPECT_EQ(c.text("data.cache_dir"), "/job/c");
  EXPECT_EQ(c.text("output_dir"), "/job/out");
  EXPECT_EQ(c.text("data.chat_template"), "{{ x }}") << "inline text is no path";
  EXPECT_EQ(to_text(c.value("data.train")),
            R"([{"path":"/job/a/*.jsonl","format":"chat","columns":{"messages":"dialogue"},)"
            R"("weight":1.0,"limit":10},)"
            R"({"path":"/abs/b.jsonl","format":"auto","columns":{},"weight":1.0,"limit":null}])");
  EXPECT_EQ(c.integer("train.gradient_accumulation_steps"), 4) << "derived from the global batch";
  EXPECT_EQ(to_text(c.value("adapter.rank_pattern")), "{\"q_proj\":4}");
  EXPECT_EQ(to_text(c.value("adapter.alpha_pattern")), "{\"q_proj\":4.5}");
  EXPECT_EQ(c.number("optim.lr_scheduler_kwargs.min_lr"), 1e-5);
  for (const char* path : {"adapter", "optim", "train", "runtime", "checkpoint"}) {
    for (const auto& [name, value] : given[path].items()) {
      if (value.is_primitive()) {
        EXPECT_EQ(c.value(std::string(path) + "." + name), value) << path << "." << name;
      }
    }
  }
}

TEST(Config, PathsWithoutFolderStay) {
  EXPECT_EQ(Config::parse(R"({"model":{"path":"m"},"data":{"chat_template":"t.jinja"}})").text("model.path"),
            "m");
  EXPECT_EQ(Config::parse(R"({"data":{"chat_template":"t.jinja"}})", "/f").text("data.chat_template"),
            "/f/t.jinja");
  EXPECT_EQ(Config::parse(R"({"adapter":{"path":"a"}})", "/f").text("adapter.path"), "/f/a");
  EXPECT_EQ(Config::parse(R"({"data":{"cache_dir":""}})", "/f").text("data.cache_dir"), "") << "no cache";
}

TEST(Config, UnknownKeysNameThePathAndTheNearestKey) {
  expect_wrong(R"({"optim":{"learnig_rate":1}})",
               {"'optim.learnig_rate'", "did you mean 'optim.learning_rate'?"});
  expect_wrong(R"({"learning_rate":1})", {"'learning_rate'", "'optim.learning_rate'"});
  expect_wrong(R"({"train":{"lr_scheduler_type":"linear"}})",
               {"'train.lr_scheduler_type'", "'optim.lr_scheduler_type'"});
  expect_wrong(R"({"optimm":{}})", {"'optimm'", "'optim'"});
  expect_wrong(R"({"optim":{"lr_scheduler_kwargs":{"min_lrr":0}}})", {"'optim.lr_scheduler_kwargs.min_lr'"});
  expect_wrong(R"({"data":{"train":[{"path":"a"},{"pth":"b"}]}})",
               {"'data.train[1].pth'", "'data.train[1].path'"});
  expect_wrong(R"({"runtime":{"xyzzy":1}})",
               {"'runtime.xyzzy'", "cpu_threads, memory_limit, disk_limit, zero_memory, devices, wall_time_limit"});
  expect_wrong(R"({"xyzzy":1})", {"'xyzzy'", "model, adapter, data, train"});
  expect_wrong(R"({"train.seed":1})", {"'train.seed'"});
  expect_wrong(R"({"":1})", {"unknown"});
  const Error error = refusal(R"({"optim":{"learnig_rate":1}})");
  EXPECT_EQ(error.details(), R"({"nearest":"optim.learning_rate","key":"optim.learnig_rate"})");
}

TEST(Config, DuplicateKeysAndBrokenTextNameTheirPlace) {
  expect_wrong("{\"train\":{\"seed\":1,\n\"seed\":2}}", {"line 2", "'train.seed' appears twice"});
  expect_wrong(R"({"train":{}, "train":{}})", {"'train' appears twice"});
  expect_wrong("{\"train\": }", {"configuration: line 1, column 11"});
  for (const char* text : {"", "[]", "3", "null", "\"x\"", "{} {}", "// c\n{}"}) {
    EXPECT_EQ(refusal(text).code(), Code::kInvalidArgument) << text;
  }
}

TEST(Config, TypesAreChecked) {
  expect_wrong(R"({"train":{"seed":"7"}})", {"'train.seed'", "integer", "\"7\""});
  expect_wrong(R"({"train":{"seed":1.5}})", {"integer", "1.5"});
  expect_wrong(R"({"train":{"seed":true}})", {"integer"});
  expect_wrong(R"({"train":{"seed":18446744073709551615}})", {"integer"});
  expect_wrong(R"({"train":{"seed":1e300}})", {"integer"});
  expect_wrong(R"({"train":{"seed":[]}})", {"integer"});
  expect_wrong(R"({"train":7})", {"'train'", "object"});
  expect_wrong(R"({"train":[]})", {"'train'", "object"});
  expect_wrong(R"({"data":{"shuffle":1}})", {"true or false"});
  expect_wrong(R"({"optim":{"learning_rate":"1e-4"}})", {"number"});
  expect_wrong(R"({"model":{"path":3}})", {"string"});
  expect_wrong(R"({"model":{"path":""}})", {"empty"});
  expect_wrong("{\"model\":{\"path\":\"a\\u0000b\"}}", {"U+0000"});
  expect_wrong(R"({"model":{"trainable":"x"}})", {"list of strings"});
  expect_wrong(R"({"model":{"trainable":["x",3]}})", {"'model.trainable[1]'", "string"});
  expect_wrong(R"({"model":{"trainable":["x","x"]}})", {"'model.trainable[1]'", "repeats"});
  expect_wrong(R"({"model":{"config":[]}})", {"object"});
  expect_wrong(R"({"adapter":{"peft_type":"LORA","target_modules":3}})", {"string or a list"});
  expect_wrong(R"({"adapter":{"peft_type":"LORA","target_modules":[]}})", {"empty"});
  expect_wrong(R"({"adapter":{"peft_type":"LORA","rank_pattern":{"q":1.5}}})",
               {"'adapter.rank_pattern.q'", "integer"});
  expect_wrong(R"({"adapter":{"peft_type":"LORA","init_lora_weights":3}})",
               {"true, false or one of: gaussian"});
  expect_wrong(R"({"data":{"train":"a.jsonl"}})", {"'data.train'", "list of objects"});
  expect_wrong(R"({"data":{"train":["a.jsonl"]}})", {"'data.train[0]'", "{\"path\": \"rows.jsonl\"}"});
  expect_wrong(R"({"data":{"train":[]}})", {"empty"});
  expect_wrong(R"({"data":{"train":[{"format":"chat"}]}})", {"'data.train[0].path'", "missing"});
  expect_wrong(R"({"data":{"train":[{"path":"a","columns":{"messages":1}}]}})",
               {"'data.train[0].columns.messages'"});
  EXPECT_EQ(Config::parse(R"({"train":{"seed":7.0}})").integer("train.seed"), 7);
  EXPECT_EQ(Config::parse(R"({"train":{"seed":9223372036854775807}})").integer("train.seed"), INT64_MAX);
}

TEST(Config, RangesAreChecked) {
  expect_wrong(R"({"train":{"seed":-1}})", {"at least 0", "-1"});
  expect_wrong(R"({"train":{"max_steps":0}})", {"at least 1"});
  expect_wrong(R"({"train":{"num_train_epochs":0}})", {"greater than 0"});
  expect_wrong(R"({"train":{"num_train_epochs":1e7}})", {"at most 1000000"});
  expect_wrong(R"({"train":{"micro_batch_tokens":3000000000}})", {"at most 2147483647"});
  expect_wrong(R"({"optim":{"adam_beta1":1}})", {"less than 1"});
  expect_wrong(R"({"optim":{"adam_epsilon":0}})", {"greater than 0"});
  expect_wrong(R"({"data":{"eval_fraction":1}})", {"less than 1"});
  expect_wrong(R"({"adapter":{"peft_type":"LORA","lora_dropout":1}})", {"less than 1"});
  expect_wrong(R"({"adapter":{"peft_type":"LORA","rank_pattern":{"q":0}}})",
               {"'adapter.rank_pattern.q'", "at least 1"});
  expect_wrong(R"({"runtime":{"wall_time_limit":0}})", {"greater than 0"});
  expect_wrong(R"({"model":{"recompute":"ful"}})", {"none, full, auto", "did you mean \"full\"?"});
}

TEST(Config, WhatThisBuildCannotDoIsRefusedWithWhatItCan) {
  const auto expect_later = [](std::string_view json, const std::vector<std::string>& parts) {
    expect_refused(json, Code::kUnimplemented, parts);
  };
  for (const char* mode : {"bf16", "f16", "fp8"}) {
    expect_later(std::string(R"({"precision":{"mode":")") + mode + "\"}}",
                 {"'precision.mode'", mode, "supported: f32"});
  }
  for (const char* name :
       {"sgd", "adafactor", "lamb", "lion", "onebit_adam", "zero_one_adam", "onebit_lamb"}) {
    expect_later(std::string(R"({"optim":{"name":")") + name + "\"}}", {"'optim.name'", "supported: adamw"});
  }
  for (const char* axis :
       {"tensor", "pipeline", "context", "expert", "expert_tensor", "data", "virtual_stages"}) {
    expect_later(std::string(R"({"parallel":{")") + axis + "\":2}}",
                 {std::string("'parallel.") + axis, "2", "supported: 1"});
  }
  expect_later(R"({"parallel":{"zero_stage":1}})", {"supported: 0"});
  expect_later(R"({"parallel":{"offload":"host"}})", {"supported: none"});
  expect_later(R"({"parallel":{"schedule":"gpipe"}})", {"supported: 1f1b"});
  expect_later(R"({"precision":{"fp8":{"recipe":"delayed"}}})", {"'precision.fp8'"});
  expect_later(R"({"optim":{"state_dtype":"bf16"}})", {"supported: f32"});
  expect_later(R"({"model":{"recompute":"selective"}})", {"supported: none, full, auto"});
  expect_later(R"({"adapter":{"peft_type":"IA3"}})", {"supported: LORA"});
  expect_later(R"({"adapter":{"peft_type":"LORA","use_dora":true}})",
               {"'adapter.use_dora'", "supported: false"});
  expect_later(R"({"adapter":{"peft_type":"LORA","bias":"all"}})", {"supported: none"});
  expect_later(R"({"adapter":{"peft_type":"LORA","init_lora_weights":"pissa"}})",
               {"supported: true, false, gaussian"});
  expect_later(R"({"checkpoint":{"async":true}})", {"'checkpoint.async'", "supported: false"});
  expect_later(R"({"data":{"eval":[{"path":"a","format":"preference"}]}})", {"'data.eval[0].format'"});
  EXPECT_EQ(refusal(R"({"precision":{"mode":"bf16"}})").details(), R"({"key":"precision.mode"})");
}

TEST(Config, ContradictionsNameBothKeys) {
  expect_wrong(R"({"train":{"early_stopping_threshold":0.1}})",
               {"'train.early_stopping_threshold'", "'train.early_stopping_patience'"});
  expect_wrong(R"({"logging":{"writers":["html"]}})", {"'logging.writers'", "jsonl"});
  expect_wrong(R"({"data":{"train":[{"path":"a"}],"eval":[{"path":"b","weight":2}]}})", {"'data.eval[0].weight'"});
  expect_wrong(R"({"model":{"path":"a","config":{}}})", {"'model.config'", "'model.path'"});
  expect_wrong(R"({"train":{"num_train_epochs":1,"max_steps":2}})",
               {"'train.max_steps'", "'train.num_train_epochs'"});
  expect_wrong(R"({"train":{"micro_batch_tokens":64,"micro_batch_size":2}})",
               {"'train.micro_batch_size'", "'train.micro_batch_tokens'"});
  expect_wrong(R"({"optim":{"warmup_steps":2,"warmup_ratio":0.1}})",
               {"'optim.warmup_ratio'", "'optim.warmup_steps'"});
  expect_wrong(R"({"data":{"eval":[{"path":"a"}],"eval_fraction":0.1}})",
               {"'data.eval_fraction'", "'data.eval'"});
  expect_wrong(R"({"data":{"packing":false}})", {"'data.packing'", "'train.micro_batch_size'"});
  expect_wrong(R"({"data":{"packing":true},"train":{"micro_batch_size":2}})",
               {"'data.packing'", "'train.micro_batch_size'"});
  expect_wrong(R"({"adapter":{"r":4}})", {"'adapter.r'", "'adapter.peft_type'"});
  expect_wrong(R"({"adapter":{"path":"a","r":4}})", {"'adapter.r'", "'adapter.path'"});
  expect_wrong(R"({"adapter":{"peft_type":"LORA"},"model":{"trainable":["x"]}})",
               {"'model.trainable'", "'adapter.modules_to_save'"});
  EXPECT_EQ(refusal(R"({"data":{"eval":[{"path":"a"}],"eval_fraction":0}})").code(), Code::kOk);
  EXPECT_EQ(refusal(R"({"optim":{"warmup_steps":2,"warmup_ratio":0}})").code(), Code::kOk);
  EXPECT_EQ(refusal(R"({"train":{"num_train_epochs":null,"max_steps":2}})").code(), Code::kOk);
  EXPECT_EQ(refusal(R"({"data":{"packing":false},"train":{"micro_batch_size":2}})").code(), Code::kOk);
}

TEST(Config, TheBatchTriangleIsChecked) {
  const auto accumulation = [](std::string_view json) {
    return Config::parse(json).integer("train.gradient_accumulation_steps");
  };
  EXPECT_EQ(accumulation(R"({"train":{"global_batch_tokens":4096}})"), 4);
  EXPECT_EQ(accumulation(R"({"train":{"global_batch_tokens":4096,"micro_batch_tokens":4096}})"), 1);
  EXPECT_EQ(accumulation(
                R"({"train":{"global_batch_size":12,"micro_batch_size":4,"gradient_accumulation_steps":3}})"),
            3);
  expect_wrong(R"({"train":{"global_batch_tokens":4097}})",
               {"'train.global_batch_tokens'", "multiple", "1024"});
  expect_wrong(R"({"train":{"global_batch_tokens":4096,"gradient_accumulation_steps":3}})",
               {"4096", "1024", "3"});
  expect_wrong(R"({"train":{"global_batch_size":12}})", {"'train.micro_batch_size'"});
  expect_wrong(R"({"train":{"global_batch_tokens":12,"micro_batch_size":4}})", {"'train.micro_batch_size'"});
  expect_wrong(R"({"train":{"global_batch_tokens":2048,"global_batch_size":4}})",
               {"'train.global_batch_size'"});
  expect_wrong(R"({"train":{"global_batch_tokens":9223372036854774784}})", {"too many"});
}

TEST(Config, SchedulerArgumentsBelongToTheirType) {
  const auto optim = [](const char* type, const char* arguments) {
    return std::string(R"({"optim":{"lr_scheduler_type":")") + type + R"(","lr_scheduler_kwargs":)" +
           arguments + "}}";
  };
  for (const char* type : {"constant", "linear", "cosine", "inverse_sqrt"})
    EXPECT_EQ(refusal(optim(type, "{}")).code(), Code::kOk);
  EXPECT_EQ(refusal(optim("cosine_with_min_lr", R"({"min_lr_rate":0.1})")).code(), Code::kOk);
  EXPECT_EQ(refusal(optim("warmup_stable_decay", R"({"num_decay_steps":5,"min_lr_ratio":0.1})")).code(),
            Code::kOk);
  EXPECT_EQ(refusal(optim("inverse_sqrt", R"({"timescale":100})")).code(), Code::kOk);
  expect_wrong(optim("cosine", R"({"min_lr":0})"),
               {"'optim.lr_scheduler_kwargs.min_lr'", "cosine_with_min_lr", "\"cosine\""});
  expect_wrong(optim("cosine_with_min_lr", "{}"), {"min_lr or min_lr_rate"});
  expect_wrong(optim("cosine_with_min_lr", R"({"min_lr":0,"min_lr_rate":0})"), {"min_lr_rate", "excludes"});
  expect_wrong(optim("cosine_with_min_lr", R"({"min_lr":1})"), {"at most 'optim.learning_rate'"});
  expect_wrong(optim("warmup_stable_decay", "{}"), {"'optim.lr_scheduler_kwargs.num_decay_steps'", "needed"});
  expect_wrong(optim("linear", R"({"timescale":1})"), {"inverse_sqrt"});
  expect_wrong(optim("polynomial", "{}"), {"constant, linear, cosine"});
}

TEST(Config, ReplacedKeysReadAsDefaultButAreNotThere) {
  const Config c = Config::parse(R"({"train":{"micro_batch_size":4,"max_steps":3}})");
  EXPECT_FALSE(c.has("train.micro_batch_tokens"));
  EXPECT_TRUE(c.value("train.micro_batch_tokens").is_null());
  EXPECT_EQ(c.integer("train.micro_batch_tokens"), 1024);
  EXPECT_FALSE(c.has("train.num_train_epochs"));
  EXPECT_FALSE(c.flag("data.packing"));
  EXPECT_FALSE(Config::parse("{}").has("adapter.r")) << "no adapter, no rank";
}

TEST(Config, SetValidatesTheWholeAndChangesNothingOnFailure) {
  Config c = Config::parse(R"({"model":{"path":"m"}})", "/f");
  c.set("optim.weight_decay", "0.5");
  EXPECT_EQ(c.number("optim.weight_decay"), 0.5);
  EXPECT_EQ(c.text("model.path"), "/f/m");
  c.set("adapter.peft_type", "\"LORA\"");
  EXPECT_EQ(c.number("optim.learning_rate"), 2e-4) << "a default follows the keys that it depends on";
  c.set("adapter", "{\"peft_type\":\"LORA\",\"r\":3}");
  EXPECT_EQ(c.integer("adapter.r"), 3);
  c.set("adapter", "null");
  EXPECT_EQ(c.number("optim.learning_rate"), 5e-5);
  const std::string before = c.to_json();
  for (const auto& [path, value] :
       std::vector<std::pair<const char*, const char*>>{{"optim.weight_decay", "-1"},
                                                        {"optim.weight_decay", "x"},
                                                        {"optim.weight_decai", "1"},
                                                        {"optim", "3"},
                                                        {"", "{}"},
                                                        {"a..b", "1"},
                                                        {"train.seed.x", "1"},
                                                        {"model.config", "{}"},
                                                        {"adapter.r", "8"}}) {
    EXPECT_THROW(c.set(path, value), Error) << path;
    EXPECT_EQ(c.to_json(), before);
  }
  EXPECT_THROW(c.set(std::string(1 << 20, '.'), "1"), Error);
  c.set("optim.weight_decay", "null");
  EXPECT_EQ(c.number("optim.weight_decay"), 0.0);
}

TEST(Config, AccessByMistakenPathIsInternalAndByMissingKeyIsNot) {
  const Config c = Config::parse("{}");
  const auto code = [](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.code();
    }
    return Code::kOk;
  };
  EXPECT_EQ(code([&] { c.integer("train.sed"); }), Code::kInternal);
  EXPECT_EQ(code([&] { c.has("train.sed"); }), Code::kInternal);
  EXPECT_EQ(code([&] { c.value("nothing"); }), Code::kInternal);
  EXPECT_EQ(code([&] { c.text("train.seed"); }), Code::kInternal);
  EXPECT_EQ(code([&] { c.text("model.path"); }), Code::kInvalidArgument);
  EXPECT_EQ(code([&] { Config().integer("train.seed"); }), Code::kOk)
      << "an empty configuration has the defaults";
}

TEST(Config, AWholeJobNeedsModelAndData) {
  const auto message = [](std::string_view json) -> std::string {
    try {
      Config::parse(json).check_job();
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  };
  EXPECT_TRUE(has(message("{}"), "'model.path'"));
  EXPECT_TRUE(has(message(R"({"model":{"path":"m"}})"), "'data.train'"));
  EXPECT_EQ(message(R"({"model":{"config":{}},"data":{"train":[{"path":"a"}]}})"), "");
}

}  // namespace
}  // namespace inlaid::config
