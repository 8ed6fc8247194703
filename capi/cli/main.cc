// inlaid: the engine from the command line, on the C API alone.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "commands.h"

using namespace inlaid_cli;

namespace {

void add_job_options(CLI::App *command, TrainOptions &options) {
  command->add_option("job", options.job, "job file (JSON); see `inlaid schema`");
  command->add_option("--model", options.model, "model folder or GGUF file, instead of a job file");
  command->add_option("--data", options.data, "training data: JSONL, JSON or text files");
  command->add_option("--eval", options.eval, "held-out data");
  command->add_option("--out", options.output, "output folder");
  command->add_flag("--full", options.full, "train all weights instead of a LoRA adapter (r=16, all linear layers)");
  command->add_option("--set", options.set, "override a key of the configuration: optim.learning_rate=1e-4");
}

// What `export` and `convert` have in common.
void add_written_model_options(CLI::App *command, ExportOptions &options) {
  command->add_option("--dtype", options.dtype, "f32, bf16, f16; for gguf also q8_0, q4_0, q4_k");
  command->add_flag("--best", options.best, "the best checkpoint of an output folder, not the latest");
  command->add_flag("!--no-certificate", options.certificate, "do not open the written model again to compare it");
}

}  // namespace

int main(int argc, char **argv) {
  CLI::App app{"Inlaid: trains and fine-tunes transformer models"};
  app.require_subcommand(1);
  app.set_version_flag("--version", inlaid_version_string());
  Common common;
  app.add_flag("--json", common.json, "machine-readable output, one JSON document a line");
  app.add_option("--threads", common.threads, "threads (default: all processors)")->check(CLI::Range(0, 4096));
  app.add_option("--memory-limit", common.memory_limit, "hard limit of the engine's memory, for example 4GiB");
  app.add_option("--disk-limit", common.disk_limit, "hard limit of the files that are written, output folder included");
  app.add_option("--time-limit", common.wall_time_limit, "seconds after which training saves, stops and can be resumed")
      ->check(CLI::PositiveNumber);
  app.add_flag("--zero-memory", common.zero_memory, "fill buffers with zeros before their memory is given back");
  app.fallthrough();

  int result = kDone;
  TrainOptions job;
  CLI::App *command = app.add_subcommand("train", "fine-tune a model: a job file, or --model, --data and --out");
  add_job_options(command, job);
  command->callback([&] { result = train(common, job); });

  std::string path;
  command = app.add_subcommand("resume", "go on with an interrupted job, bit for bit");
  command->add_option("output", path, "output folder of the job")->required();
  command->callback([&] { result = resume(common, path); });

  ChatOptions chat_options;
  command = app.add_subcommand("chat", "talk to a model, or to what a job made of it");
  command->add_option("path", chat_options.path, "output folder, checkpoint, adapter folder, model folder or GGUF file")->required();
  command->add_option("--prompt", chat_options.prompt, "one question instead of a conversation");
  command->add_option("--system", chat_options.system, "system message");
  command->add_option("--generation", chat_options.generation, R"(options as JSON: {"max_new_tokens": 64, "temperature": 0.7})");
  command->add_option("--weights", chat_options.weights_dtype, "f32, bf16, f16 or as_stored");
  command->add_flag("--best", chat_options.best, "the best checkpoint of an output folder, not the latest");
  command->callback([&] { result = chat(common, chat_options); });

  EvalOptions eval_options;
  command = app.add_subcommand("eval", "loss and accuracy on data");
  command->add_option("path", eval_options.path, "what `chat` takes")->required();
  command->add_option("--data", eval_options.data, "data to evaluate on")->required();
  command->add_option("--weights", eval_options.weights_dtype, "f32, bf16, f16 or as_stored");
  command->add_option("--set", eval_options.set, "override a key of the configuration: data.max_length=512");
  command->add_flag("--best", eval_options.best, "the best checkpoint of an output folder, not the latest");
  command->callback([&] { result = evaluate(common, eval_options); });

  ExportOptions export_options;
  command = app.add_subcommand("export", "write what was trained as PEFT adapter, Hugging Face folder or GGUF file");
  command->add_option("path", export_options.path, "output folder or checkpoint")->required();
  command->add_option("--format", export_options.format, "peft, huggingface or gguf")
      ->required()
      ->check(CLI::IsMember({"peft", "huggingface", "gguf"}));
  command->add_option("--to", export_options.to, "where to (default: adapter, model or model.gguf in the output folder)");
  add_written_model_options(command, export_options);
  command->callback([&] { result = export_result(common, export_options); });

  command = app.add_subcommand("convert", "write a model in another format: to NAME.gguf, or to a Hugging Face folder");
  command->add_option("path", export_options.path, "what `chat` takes")->required();
  command->add_option("to", export_options.to, "file NAME.gguf, or folder")->required();
  add_written_model_options(command, export_options);
  command->callback([&] { result = convert(common, export_options); });

  command = app.add_subcommand("jobs", "the jobs whose output folders lie in a folder, and their states");
  command->add_option("folder", path)->required();
  command->callback([&] { result = jobs(common, path); });

  std::string report_to;
  command = app.add_subcommand("report", "curves, answers, data and settings of a job as one HTML page");
  command->add_option("output", path, "output folder of the job")->required();
  command->add_option("--to", report_to, "file to write (default: report.html in the output folder)");
  command->callback([&] { result = report(common, path, report_to); });

  command = app.add_subcommand("plan", "memory and work of a job, before it allocates anything");
  add_job_options(command, job);
  command->callback([&] { result = plan(common, job); });

  CLI::App *data_command = app.add_subcommand("data", "about training data");
  data_command->require_subcommand(1);
  int64_t show = 0;
  command = data_command->add_subcommand("check", "read the data of a job and report what is used, truncated, refused");
  add_job_options(command, job);
  command->add_option("--show", show, "print the first samples and what is learnt of them");
  command->callback([&] { result = check_data(common, job, show); });

  command = app.add_subcommand("describe", "what a checkpoint, adapter or model holds");
  command->add_option("path", path)->required();
  command->callback([&] { result = describe(common, path); });

  command = app.add_subcommand("verify", "check every hash of an output folder (inputs, outputs, checkpoints), or of one checkpoint");
  command->add_option("path", path)->required();
  command->callback([&] { result = verify(common, path); });

  command = app.add_subcommand("schema", "JSON Schema of a job file");
  command->callback([&] { result = schema(); });

  try {
    app.parse(argc, argv);
  } catch (const CLI::RequiredError &e) {
    const std::vector<std::string> unknown = app.remaining(true);
    if (unknown.empty() || unknown[0].starts_with("-")) return app.exit(e) == 0 ? kDone : kUsage;
    print_failure({kUsage, "there is no command '" + unknown[0] + "'; `inlaid --help` lists them"}, common.json);
    return kUsage;
  } catch (const CLI::ParseError &e) {
    return app.exit(e) == 0 ? kDone : kUsage;
  } catch (const Failure &e) {
    print_failure(e, common.json);
    return e.exit;
  } catch (const std::exception &e) {
    print_failure({kFailed, e.what()}, common.json);
    return kFailed;
  }
  return result;
}
