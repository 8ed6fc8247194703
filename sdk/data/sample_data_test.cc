// The sample data set of samples/quickstart is what its script says: well-formed, short, and without overlap.
#include <gtest/gtest.h>

#include <set>

#include "sdk/data/dataset.h"
#include "sdk/data/testing/support.h"

namespace inlaid::data {
namespace {

const std::string kFolder = std::string(INLAID_SOURCE_DIR) + "/samples/quickstart/data";

std::set<std::string> questions(const std::string& text, std::string_view what) {
  std::set<std::string> out;
  for (const Json& row : parse_json(text, what)) out.insert(row["messages"][1]["content"].get<std::string>());
  return out;
}

// A JSONL file as the text of an array.
std::string as_array(std::string lines) {
  lines.pop_back();
  for (size_t at = 0; (at = lines.find('\n', at)) != std::string::npos; at += 2) lines.replace(at, 1, ",\n");
  return "[" + lines + "]";
}

TEST(SampleData, IsUsable) {
  FileSystem& fs = posix_file_system();
  const testing::World w;
  ThreadPool pool(2);
  for (const auto& [name, rows] : {std::pair{"train.jsonl", 3000}, std::pair{"eval.jsonl", 100}}) {
    DatasetOptions options = w.options;
    options.sources.push_back({join_path(kFolder, name)});
    const auto dataset = Dataset::open(options, fs, pool, w.account, w.tokenizer, w.chat_template);
    EXPECT_EQ(dataset->size(), rows);
    EXPECT_EQ(dataset->report().files[0].format, "chat");
    EXPECT_TRUE(dataset->report().warnings.empty());
    EXPECT_LT(dataset->longest(), 250);  // in bytes, with this tokenizer
  }
}

TEST(SampleData, HeldOutWordsAreNotTrained) {
  FileSystem& fs = posix_file_system();
  const std::set<std::string> train =
      questions(as_array(read_text(fs, join_path(kFolder, "train.jsonl"))), "train");
  const std::set<std::string> eval =
      questions(as_array(read_text(fs, join_path(kFolder, "eval.jsonl"))), "eval");
  const std::set<std::string> prompts =
      questions(read_text(fs, join_path(kFolder, "prompts.json")), "prompts");
  EXPECT_EQ(train.size(), 3000u);
  EXPECT_EQ(eval.size(), 100u);
  EXPECT_EQ(prompts.size(), 3u);
  for (const std::string& question : prompts)
    EXPECT_FALSE(train.contains(question) || eval.contains(question)) << question;
  for (const std::string& question : eval) EXPECT_FALSE(train.contains(question)) << question;
}

}  // namespace
}  // namespace inlaid::data
