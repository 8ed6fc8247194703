// Every writer under "operation n fails" and "power is lost at operation n": the target is absent or whole.
#include "sdk/formats/staged.h"

#include "sdk/base/testing/fault_file_system.h"
#include "sdk/base/testing/memory_file_system.h"
#include "sdk/formats/testing.h"

namespace inlaid::formats {
namespace {

using testing::FaultFileSystem;
using testing::MemoryFileSystem;

struct Writer {
  const char* name;
  std::string target;
  std::function<void(FileSystem&)> write;
  std::function<void(FileSystem&)> check;  // throws or fails unless the target is whole
};

void read_all(const WeightSource& source) {
  for (const StoredTensor& tensor : source.tensors()) bytes_of(source, tensor.name);
}

std::vector<Writer> writers() {
  const auto check_model = [](const std::string& path) {
    return [path](FileSystem& fs) {
      const ModelFiles files = open_model(fs, path);
      read_all(*files.weights);
      EXPECT_EQ(files.tokenizer_json, tiny_tokenizer());
      EXPECT_EQ(files.weights->tensors().size(), 15u);
    };
  };
  return {
      {"hugging face", "/out/m",
       [](FileSystem& fs) {
         const ModelFiles model = tiny_model();
         write_hugging_face(fs, "/out/m", model, tiny_tensors(model.config, DType::f16), 5000);
       },
       check_model("/out/m")},
      {"gguf", "/out/m.gguf",
       [](FileSystem& fs) {
         const ModelFiles model = tiny_model();
         write_gguf(fs, "/out/m.gguf", model, tiny_tensors(model.config, DType::q8_0));
       },
       check_model("/out/m.gguf")},
      {"peft", "/out/a",
       [](FileSystem& fs) {
         auto tensors = tiny_tensors(tiny_config(), DType::f32);
         for (ExportTensor& tensor : tensors) tensor.name = "base_model.model." + tensor.name;
         write_peft(fs, "/out/a", Json{{"peft_type", "LORA"}}, tensors);
       },
       [](FileSystem& fs) { read_all(*open_peft(fs, "/out/a").weights); }},
  };
}

TEST(StagedOutput, FailureOfAnyOperationLeavesNothing) {
  for (const Writer& writer : writers()) {
    MemoryFileSystem probe;
    FaultFileSystem counting(probe);
    writer.write(counting);
    const int64_t total = counting.operations();
    ASSERT_GT(total, 5) << writer.name;
    for (int64_t n = 0; n < total; ++n) {
      MemoryFileSystem disk;
      FaultFileSystem fs(disk);
      fs.fail_at(n, Code::kResourceExhausted);
      const Outcome outcome = outcome_of([&] { writer.write(fs); });
      EXPECT_EQ(outcome.code, Code::kResourceExhausted)
          << writer.name << " at " << counting.history()[static_cast<size_t>(n)];
      if (disk.exists(writer.target)) writer.check(disk);  // only the syncs after the rename can fail so
      const size_t expected = disk.exists(writer.target) ? 1 : 0;
      const size_t left = disk.exists("/out") ? disk.list("/out").size() : 0;
      EXPECT_EQ(left, expected) << writer.name << " leaves a temporary";
    }
  }
}

TEST(StagedOutput, PowerLossAtAnyOperationLeavesNothingOrEverything) {
  for (const Writer& writer : writers()) {
    MemoryFileSystem probe;
    FaultFileSystem counting(probe);
    writer.write(counting);
    for (int64_t n = 0; n <= counting.operations(); ++n) {
      for (const testing::CrashOptions& options : testing::all_crash_options()) {
        MemoryFileSystem disk;
        FaultFileSystem fs(disk);
        fs.cut_power_at(n);
        const Outcome outcome = outcome_of([&] { writer.write(fs); });
        disk.crash(options);
        EXPECT_TRUE(outcome.code != Code::kOk || disk.exists(writer.target))
            << writer.name << " " << describe(options);
        if (disk.exists(writer.target)) {
          const Outcome whole = outcome_of([&] { writer.check(disk); });
          EXPECT_EQ(whole.code, Code::kOk)
              << writer.name << " at operation " << n << ", " << describe(options) << ": " << whole.message;
        }
      }
    }
  }
}

TEST(StagedOutput, TemporaryNamesThatAreTakenAreSkipped) {
  MemoryFileSystem fs;
  write_text(fs, "/m.tmp-1/left", "from an export that was killed");
  StagedOutput output(fs, "/m/", StagedOutput::Kind::kFolder);
  EXPECT_EQ(output.path(), "/m.tmp-2");
  output.write_text("f", "x");
  output.commit();
  EXPECT_EQ(read_text(fs, "/m/f"), "x");
  EXPECT_EQ(read_text(fs, "/m.tmp-1/left"), "from an export that was killed");
}

}  // namespace
}  // namespace inlaid::formats
