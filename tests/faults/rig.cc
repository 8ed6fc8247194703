#include "rig.h"

#include <cstdlib>

#include "capi/src/handles.h"
#include "sdk/base/json.h"

namespace faults {
namespace {

using inlaid::Json;

void put(inlaid::FileSystem& disk, const std::string& path, const std::string& text) {
  disk.make_folders(inlaid::parent_path(path));
  const auto file = disk.create(path);
  file->write(std::as_bytes(std::span(text.data(), text.size())));
  file->close();
}

std::string golden(const std::string& name) {
  const char* source = std::getenv("INLAID_SOURCE");
  if (source == nullptr) inlaid::fail(inlaid::Code::kNotFound, "INLAID_SOURCE is not set; use tests/run");
  return inlaid::read_text(inlaid::posix_file_system(), std::string(source) + "/tests/golden/text/" + name);
}

std::string rows(int count) {
  const char* nouns[] = {"lamp", "orchard", "river", "stone", "whisper", "bridge"};
  std::string lines;
  for (int i = 0; i < count; ++i) {
    const std::string noun = nouns[i % 6], number = std::to_string(i);
    const Json row = {{"messages",
                       {{{"role", "user"}, {"content", "Define " + noun + " " + number}},
                        {{"role", "assistant"}, {"content", "the " + noun + " of number " + number}}}}};
    lines += inlaid::to_text(row) + "\n";
  }
  return lines;
}

void walk(inlaid::FileSystem& disk, const std::string& folder, std::vector<std::string>* paths) {
  for (const std::string& name : disk.list(folder)) {
    const std::string path = inlaid::join_path(folder, name);
    paths->push_back(path);
    if (disk.is_folder(path)) walk(disk, path, paths);
  }
}

}  // namespace

Rig::Rig() {
  static const std::string tokenizer = golden("tokenizers/byte_bpe.json"), chat = golden("templates/chatml.jinja");
  put(disk, "/in/tokenizer/tokenizer.json", tokenizer);
  put(disk, "/in/tokenizer/tokenizer_config.json", R"({"eos_token": "<|im_end|>"})");
  put(disk, "/in/tokenizer/chat_template.jinja", chat);
  put(disk, "/in/train.jsonl", rows(16));
  put(disk, "/in/eval.jsonl", rows(3));
}

inlaid_runtime* Rig::new_runtime() {
  auto state = std::make_shared<inlaid::capi::RuntimeState>();
  state->settings = "{}";
  // The rig outlives its runtimes.
  const std::shared_ptr<inlaid::SystemAllocator> memory(std::shared_ptr<void>(), &allocator);
  state->runtime = std::make_shared<inlaid::Runtime>(1, 0, memory, files, inlaid::Log(),
                                                     inlaid::kernels::cpu_kernels(inlaid::kernels::cpu_level()));
  return new inlaid_runtime(std::move(state));
}

std::vector<std::string> Rig::tree() {
  std::vector<std::string> paths;
  walk(disk, "/", &paths);
  return paths;
}

std::vector<std::string> Rig::temporary() {
  std::vector<std::string> found;
  for (std::string& path : tree()) {
    if (path.find(".tmp") != std::string::npos) found.push_back(std::move(path));
  }
  return found;
}

}  // namespace faults
