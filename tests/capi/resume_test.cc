// Going on in a new process: the same bits as without interruption, after an orderly end and after kill -9.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <random>
#include <sstream>
#include <thread>

#include "support.h"

namespace capi_test {
namespace {

std::vector<std::string> step_lines(const std::string& output) {
  std::vector<std::string> lines;
  std::istringstream stream(output);
  for (std::string line; std::getline(stream, line);) {
    if (line != "saved") lines.push_back(line);
  }
  return lines;
}

json long_job(const Folder& folder, const std::string& output, bool lora) {
  json job = folder.job(output, lora);
  job["train"]["max_steps"] = 17;  // about three epochs
  job["train"]["gradient_accumulation_steps"] = 2;
  return job;
}

std::vector<std::string> uninterrupted(const Folder& folder, bool lora) {
  const Runtime runtime = make_runtime(2);
  return train(runtime.get(), long_job(folder, lora ? "whole_lora" : "whole_full", lora)).steps;
}

std::string adapter_bytes(const Folder& folder, const std::string& output) {
  const std::string target = folder / (output + "_adapter");
  const ChildResult result = run_child({"adapter", folder / output, target});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  return read_file(target + "/adapter_model.safetensors");
}

// Three processes with one, three and two threads, cut in the middle of epochs; the last one evaluates and generates
// between its steps.
TEST(Resume, NewProcessesOtherThreadsSameBits) {
  const Folder folder;
  for (bool lora : {true, false}) {
    const std::vector<std::string> expected = uninterrupted(folder, lora);
    ASSERT_EQ(expected.size(), 17u);
    const std::string output = folder / (lora ? "lora" : "full");
    write_file(folder / "job.json", long_job(folder, lora ? "lora" : "full", lora).dump());
    const ChildResult first = run_child({"train", folder / "job.json", "1", "5"});
    ASSERT_EQ(first.exit_code, 0) << first.output;
    const ChildResult second = run_child({"resume", output, "3", "11"});
    ASSERT_EQ(second.exit_code, 0) << second.output;
    const ChildResult third = run_child({"busy", output, "2"});
    ASSERT_EQ(third.exit_code, 0) << third.output;
    EXPECT_EQ(step_lines(first.output).size(), 5u);
    EXPECT_EQ(step_lines(second.output).size(), 6u);
    EXPECT_EQ(step_lines(first.output + second.output + third.output), expected);
  }
}

// The output folder may move between two processes.
TEST(Resume, AfterTheFolderMoved) {
  const Folder folder;
  const std::vector<std::string> expected = uninterrupted(folder, true);
  write_file(folder / "job.json", long_job(folder, "here", true).dump());
  const ChildResult first = run_child({"train", folder / "job.json", "2", "6"});
  ASSERT_EQ(first.exit_code, 0) << first.output;
  std::filesystem::rename(folder / "here", folder / "there");
  const ChildResult second = run_child({"resume", folder / "there", "2"});
  ASSERT_EQ(second.exit_code, 0) << second.output;
  EXPECT_EQ(step_lines(first.output + second.output), expected);
}

// A template that writes the time shows that of the job's creation, whenever it is resumed.
TEST(Resume, TheClockOfTheTemplateIsTheJobs) {
  const Folder folder;
  json job = long_job(folder, "out", true);
  job["data"]["chat_template"] =
      "{% for m in messages %}{{ '<|im_start|>' + m.role + strftime_now('%S') + '\n' + m.content + '<|im_end|>' }}{% endfor %}\n";
  write_file(folder / "job.json", job.dump());
  const ChildResult first = run_child({"train", folder / "job.json", "1", "3"});
  ASSERT_EQ(first.exit_code, 0) << first.output;
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  const ChildResult second = run_child({"resume", folder / "out", "1", "4"});
  EXPECT_EQ(second.exit_code, 0) << second.output;
  EXPECT_EQ(step_lines(second.output).size(), 1u) << second.output;
}

// A run that branches off from an older checkpoint replaces what the earlier run saved at the same steps.
TEST(Resume, ABranchReplacesLaterCheckpoints) {
  const Folder folder;
  const Runtime runtime = make_runtime(2);
  json job = long_job(folder, "out", true);
  job["checkpoint"] = {{"save_steps", 3}};
  job["train"]["max_steps"] = 6;
  train(runtime.get(), job);
  const std::string checkpoints = folder / "out/checkpoints", last = checkpoints + "/step-000006";
  const json before = parsed(inlaid_checkpoint_manifest, runtime.get(), last.c_str(), 1);

  job.erase("output_dir");
  job["optim"]["learning_rate"] = 0.02;
  const Config config = make_config(job);
  const Job branch = make<Job>(inlaid_job_create, runtime.get(), config.get());
  const Trainer trainer = make<Trainer>(inlaid_job_trainer, branch.get());
  ok(inlaid_checkpoint_restore(trainer.get(), (checkpoints + "/step-000003").c_str()));
  const std::string options = json({{"checkpoint_dir", checkpoints}}).dump();
  const RunHandle run =
      make<RunHandle>(inlaid_run_start, trainer.get(), static_cast<inlaid_dataset*>(nullptr), options.c_str());
  EXPECT_EQ(watch(run.get()).steps.size(), 3u);
  EXPECT_NE(parsed(inlaid_checkpoint_manifest, runtime.get(), last.c_str(), 1), before);
  const json verified = parsed(inlaid_checkpoint_verify, runtime.get(), last.c_str());
  EXPECT_TRUE(verified["ok"].get<bool>()) << verified;
}

// What changed in between is named.
TEST(Resume, RefusesOtherData) {
  const Folder folder;
  write_file(folder / "job.json", long_job(folder, "out", true).dump());
  ASSERT_EQ(run_child({"train", folder / "job.json", "1", "3"}).exit_code, 0);
  const std::string rows = read_file(folder / "train.jsonl");
  write_file(folder / "train.jsonl", rows.substr(rows.find('\n') + 1));
  const ChildResult refused = run_child({"resume", folder / "out", "1"});
  EXPECT_EQ(refused.exit_code, 10 + INLAID_FAILED_PRECONDITION) << refused.output;
  EXPECT_NE(refused.output.find("training data"), std::string::npos) << refused.output;
  write_file(folder / "train.jsonl", rows);
  EXPECT_EQ(run_child({"resume", folder / "out", "1"}).exit_code, 0);
}

// A job that saves after every step is killed again and again, at random moments; each time it goes on from a checkpoint that
// is whole, and in the end it has learnt what an undisturbed job learns, bit for bit.
TEST(Resume, KilledAtRandomMoments) {
  const Folder folder;
  json job = long_job(folder, "undisturbed", true);
  job["train"]["max_steps"] = 40;
  job["checkpoint"] = {{"save_steps", 1}, {"save_total_limit", 2}};
  write_file(folder / "job.json", job.dump());
  const ChildResult whole = run_child({"train", folder / "job.json", "2"});
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  const std::vector<std::string> expected = step_lines(whole.output);
  ASSERT_EQ(expected.size(), 40u);

  job["output_dir"] = folder / "killed";
  write_file(folder / "job.json", job.dump());
  std::mt19937 random(20240611);
  int kills = 0;
  for (int round = 0; round < 200; ++round) {
    const bool started = std::filesystem::exists(folder / "killed/job.json");
    const auto [child, output] = started ? start_child({"resume", folder / "killed", std::to_string(1 + round % 3)})
                                         : start_child({"train", folder / "job.json", "1"});
    // Some steps, then some microseconds more: anywhere in a step, a save, a rename or the clean-up.
    size_t lines = random() % 7;
    std::string text;
    char byte;
    while (lines > 0 && read(output, &byte, 1) == 1) {
      text += byte;
      lines -= byte == '\n';
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 4000));
    kill(child, SIGKILL);
    while (read(output, &byte, 1) == 1) text += byte;
    close(output);
    int status = 0;
    waitpid(child, &status, 0);
    text.resize(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1);
    for (const std::string& line : step_lines(text)) {
      const auto step = static_cast<size_t>(std::stoi(line));
      ASSERT_EQ(line, expected.at(step - 1)) << "round " << round;
    }
    if (WIFEXITED(status)) {
      ASSERT_EQ(WEXITSTATUS(status), 0) << text;
      break;
    }
    ++kills;
  }
  EXPECT_GE(kills, 5);
  const ChildResult last = run_child({"resume", folder / "killed", "2"});
  EXPECT_EQ(last.exit_code, 0) << last.output;
  EXPECT_EQ(adapter_bytes(folder, "killed"), adapter_bytes(folder, "undisturbed"));
  std::printf("killed %d times\n", kills);
}

// A disk that is full while the job saves: the error names the file, the checkpoint before stays, and with room again the job
// goes on as if nothing had been.
TEST(Resume, FullDisk) {
  const Folder folder;
  const std::vector<std::string> expected = uninterrupted(folder, true);
  json job = long_job(folder, "out", true);
  write_file(folder / "job.json", job.dump());
  ASSERT_EQ(run_child({"train", folder / "job.json", "1", "4"}).exit_code, 0);
  const std::string events = folder / "out/events.jsonl";
  // The shard is larger than what fits, everything else is smaller.
  job["output_dir"] = folder / "cramped";
  write_file(folder / "cramped.json", job.dump());
  const ChildResult cramped = run_child({"full_disk", "12000", folder / "cramped.json"});
  EXPECT_NE(cramped.exit_code, 0);
  EXPECT_GT(cramped.exit_code, 10) << "an error of the library, not a signal: " << cramped.output;
  EXPECT_NE(cramped.output.find("cramped"), std::string::npos) << "names the file: " << cramped.output;
  const ChildResult rest = run_child({"resume", folder / "out", "2"});
  EXPECT_EQ(rest.exit_code, 0) << rest.output;
  EXPECT_EQ(step_lines(rest.output), std::vector<std::string>(expected.begin() + 4, expected.end()));
}

}  // namespace
}  // namespace capi_test
