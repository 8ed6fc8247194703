#include "sdk/train/report/report.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sdk/base/error.h"
#include "sdk/base/testing/memory_file_system.h"
#include "sdk/train/report/chart.h"
#include "sdk/train/report/curve.h"
#include "sdk/train/report/run_record.h"

namespace inlaid::train {
namespace {

TEST(Curve, MergesNeighboursAndKeepsMeanAndRange) {
  Curve curve(8);
  double sum = 0;
  for (int64_t step = 1; step <= 1000; ++step) {
    curve.add(step, static_cast<double>(step % 7));
    sum += static_cast<double>(step % 7);
  }
  EXPECT_LE(curve.points().size(), 8u);
  EXPECT_GE(curve.points().size(), 4u);
  double total = 0;
  int64_t count = 0;
  for (const Curve::Point& point : curve.points()) {
    total += point.sum;
    count += point.count;
  }
  EXPECT_EQ(count, 1000);
  EXPECT_EQ(total, sum);
  EXPECT_EQ(curve.points().back().step, 1000);
  EXPECT_EQ(curve.low(), 0);
  EXPECT_EQ(curve.high(), 6);
}

TEST(Curve, GoesBackToACheckpoint) {
  Curve curve;
  for (int64_t step = 1; step <= 9; ++step) curve.add(step, 1);
  curve.add(6, 2);
  ASSERT_EQ(curve.points().size(), 6u);
  EXPECT_EQ(curve.points().back().mean(), 2);
  curve.add(7, std::nan(""));
  EXPECT_EQ(curve.points().size(), 6u);
}

TEST(Chart, NumbersAndText) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(2e-4), "0.0002");
  EXPECT_EQ(short_number(1234), "1234");
  EXPECT_EQ(short_number(12345), "12.3k");
  EXPECT_EQ(short_number(2.5e6), "2.5M");
  EXPECT_EQ(html_escape("<a href='x'>&\"</a>"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;&lt;/a&gt;");
  EXPECT_EQ(line_chart("empty", {{"none", nullptr}}), "");
  Curve flat;
  flat.add(3, 5);
  const std::string chart = line_chart("one <point>", {{"", &flat}});
  EXPECT_EQ(chart.find("nan"), std::string::npos) << chart;
  EXPECT_EQ(chart.find("<point>"), std::string::npos) << chart;
}

void write(FileSystem& files, const std::string& path, const std::string& text) {
  const auto file = files.create(path);
  file->write(std::as_bytes(std::span(text.data(), text.size())));
  file->close();
}

class ReportTest : public ::testing::Test {
 protected:
  ReportTest() {
    disk_.make_folders("/jobs/one");
    write(disk_, "/jobs/one/job.json",
          R"({"created":"2026-01-02T03:04:05","inlaid_version":"0.1",)"
          R"("config":{"model":{"path":"/m/<b>.gguf"},"adapter":{"peft_type":"LORA"}}})");
    write(disk_, "/jobs/one/data_report.json",
          R"({"train":{"rows":10,"used":8,"refused":[{"file":"a.jsonl","row":3,"reason":"no <messages>"}],"dropped":[],"tokens":99}})");
    write(disk_, "/jobs/one/events.jsonl",
          "{\"event\":\"sample\",\"step\":0,\"time\":100,\"prompt\":\"What is <i>?\",\"text\":\"before & all\"}\n"
          "{\"event\":\"eval\",\"step\":0,\"time\":101,\"eval_loss\":3.5,\"eval_mean_token_accuracy\":0.25}\n"
          "{\"event\":\"step\",\"step\":1,\"time\":102,\"loss\":3.25,\"total_steps\":3,"
          "\"num_rows\":4,\"memory_peak_bytes\":1048576,\"memory_peak_weights\":1048576}\n"
          "{\"event\":\"step\",\"step\":2,\"time\":103,\"loss\":9,\"total_steps\":3,\"num_rows\":8}\n"
          "{\"event\":\"step\",\"step\":2,\"time\":203,\"loss\":2.25,\"total_steps\":3,\"num_rows\":8}\n"
          "{\"event\":\"st\n"
          "[1,2]\n"
          "{\"event\":\"step\",\"step\":\"two\"}\n"
          "{\"event\":\"change\",\"step\":2,\"text\":\"optim.learning_rate = 1e-05\"}\n"
          "{\"event\":\"eval\",\"step\":3,\"time\":204,\"eval_loss\":1.5,\"eval_mean_token_accuracy\":0.75}\n"
          "{\"event\":\"sample\",\"step\":3,\"time\":204,\"prompt\":\"What is <i>?\",\"text\":\"after\"}\n"
          "{\"event\":\"checkpoint\",\"step\":3,\"time\":204,\"text\":\"/jobs/one/checkpoints/step-000003\"}\n"
          "{\"event\":\"done\",\"step\":3,\"time\":205,\"text\":\"done\"}\n"
          "{\"event\":\"step\",\"step\":99");
  }
  testing::MemoryFileSystem disk_;
};

TEST_F(ReportTest, ReadsWhatIsThere) {
  const RunRecord record = read_run_record(disk_, "/jobs/one");
  ASSERT_EQ(record.train.at("loss").points().size(), 2u);
  EXPECT_EQ(record.train.at("loss").points().back().mean(), 2.25) << "the step after the resume counts";
  EXPECT_EQ(record.eval.at("eval_loss").points().size(), 2u);
  ASSERT_EQ(record.samples.size(), 1u);
  EXPECT_EQ(record.samples[0].before, "before & all");
  EXPECT_EQ(record.samples[0].after, "after");
  EXPECT_EQ(record.end, "done");
  EXPECT_EQ(record.steps_done, 2);
  EXPECT_EQ(record.unreadable_lines, 3) << "half a line, no object, and a step that is no number";
  EXPECT_EQ(record.last_time - record.first_time, 105);
}

TEST_F(ReportTest, PageShowsItAndEscapesIt) {
  const std::string page = report_html(disk_, "/jobs/one");
  for (const char* part : {"3.5000 → 1.5000", "25.0 % → 75.0 %", "What is &lt;i&gt;?", "before &amp; all", "after", "no &lt;messages&gt;",
                           "optim.learning_rate = 1e-05", "step-000003", "/m/&lt;b&gt;.gguf", "LORA adapter", "3 lines of events.jsonl",
                           "Peak memory by category", "2026-01-02T03:04:05"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  for (const char* part : {"<i>", "<messages>", "<b>.gguf", "http://", "https://"}) {
    EXPECT_EQ(page.find(part), std::string::npos) << part;
  }
}

TEST_F(ReportTest, BeforeTheFirstEvent) {
  disk_.remove_all("/jobs/one/events.jsonl");
  disk_.remove_all("/jobs/one/data_report.json");
  EXPECT_NE(report_html(disk_, "/jobs/one").find("starting after step 0"), std::string::npos);
  try {
    report_html(disk_, "/jobs");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kNotFound);
  }
}

// The file is read block by block; a line may lie across blocks.
TEST_F(ReportTest, LinesAcrossBlocks) {
  std::string text;
  for (int step = 1; step <= 9000; ++step) {
    text += "{\"event\":\"step\",\"step\":" + std::to_string(step) + ",\"loss\":1,\"padding\":\"";
    text += std::string(300, 'x') + "\"}\n";
  }
  write(disk_, "/jobs/one/events.jsonl", text);
  const RunRecord record = read_run_record(disk_, "/jobs/one");
  EXPECT_EQ(record.steps_done, 9000);
  EXPECT_EQ(record.unreadable_lines, 0);
  int64_t count = 0;
  for (const Curve::Point& point : record.train.at("loss").points()) count += point.count;
  EXPECT_EQ(count, 9000);
}

}  // namespace
}  // namespace inlaid::train
