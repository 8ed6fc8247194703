#include "sdk/train/event_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>

#include "sdk/base/error.h"
#include "sdk/base/json.h"
#include "sdk/base/testing/memory_file_system.h"

namespace inlaid::train {
namespace {

Event make_event(EventKind kind, int64_t step, std::vector<std::pair<std::string, double>> metrics, std::string text = "") {
  Event event;
  event.kind = kind;
  event.step = step;
  event.time = 1700000000.5 + static_cast<double>(step);
  event.metrics = std::move(metrics);
  event.text = std::move(text);
  return event;
}

void write(FileSystem& files, const std::vector<std::string>& names, const std::vector<Event>& events) {
  const auto writers = open_writers(files, "/out", names);
  for (const Event& event : events) {
    for (const auto& writer : writers) writer->write(event);
  }
  for (const auto& writer : writers) writer->close();
}

TEST(EventWriter, JsonLines) {
  testing::MemoryFileSystem disk;
  write(disk, {"jsonl"}, {make_event(EventKind::step, 1, {{"loss", 2.5}})});
  write(disk, {"jsonl"}, {make_event(EventKind::warning, 2, {}, "a \"word\"\nand more")});
  EXPECT_EQ(read_text(disk, "/out/events.jsonl"),
            "{\"event\":\"step\",\"step\":1,\"seq\":0,\"time\":1700000001.5,\"loss\":2.5}\n"
            "{\"event\":\"warning\",\"step\":2,\"seq\":0,\"time\":1700000002.5,\"text\":\"a \\\"word\\\"\\nand more\"}\n");
}

// A line that a crash cut off does not swallow the first one of the next run.
TEST(EventWriter, ALineCutOffStaysALine) {
  testing::MemoryFileSystem disk;
  disk.make_folders("/out");
  for (const char* name : {"events.jsonl", "steps.csv"}) {
    const std::string half = std::string(name) == "steps.csv" ? "step,time,loss\n1,17" : "{\"event\":\"st";
    const auto file = disk.create(join_path("/out", name));
    file->write(std::as_bytes(std::span(half.data(), half.size())));
    file->close();
  }
  write(disk, {"jsonl", "csv"}, {make_event(EventKind::step, 2, {{"loss", 2.5}})});
  EXPECT_EQ(read_text(disk, "/out/events.jsonl").substr(0, 15), "{\"event\":\"st\n{\"");
  EXPECT_EQ(read_text(disk, "/out/steps.csv"), "step,time,loss\n1,17\n2,1700000002.5,2.5\n");
}

TEST(EventWriter, Csv) {
  testing::MemoryFileSystem disk;
  const double third = 1.0 / 3;
  write(disk, {"csv"}, {make_event(EventKind::step, 1, {{"loss", third}, {"grad_norm", 1e-20}}),
                        make_event(EventKind::eval, 1, {{"eval_loss", 2}}), make_event(EventKind::state, 1, {}, "saving")});
  write(disk, {"csv"}, {make_event(EventKind::step, 2, {{"loss", std::nan("")}, {"grad_norm", 0}})});
  const std::string text = read_text(disk, "/out/steps.csv");
  EXPECT_EQ(text.substr(0, text.find('\n')), "step,time,loss,grad_norm");
  double loss = 0;
  ASSERT_EQ(std::sscanf(text.c_str() + text.find('\n') + 1, "1,1700000001.5,%lf", &loss), 1);
  EXPECT_EQ(loss, third) << "all bits";
  EXPECT_NE(text.find("\n2,1700000002.5,,0\n"), std::string::npos) << "not a number is an empty field: " << text;
  EXPECT_EQ(read_text(disk, "/out/evals.csv"), "step,time,eval_loss\n1,1700000001.5,2\n");
  try {
    write(disk, {"csv"}, {make_event(EventKind::step, 3, {{"loss", 1}})});
    ADD_FAILURE() << "other columns";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kFailedPrecondition);
    EXPECT_NE(error.message().find("steps.csv"), std::string::npos);
  }
}

// CRC-32C, bit by bit, to check the writer's own.
uint32_t slow_crc(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

uint64_t number(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  return value;
}

std::vector<std::string> records(std::string_view file) {
  std::vector<std::string> result;
  while (!file.empty()) {
    const uint64_t length = number(file.substr(0, 8));
    EXPECT_EQ(number(file.substr(8, 4)), slow_crc(file.substr(0, 8)));
    result.emplace_back(file.substr(12, length));
    EXPECT_EQ(number(file.substr(12 + length, 4)), slow_crc(file.substr(12, length)));
    file.remove_prefix(16 + length);
  }
  return result;
}

TEST(EventWriter, TensorBoard) {
  testing::MemoryFileSystem disk;
  Event sample = make_event(EventKind::sample, 1, {}, "the answer");
  sample.prompt = "a question";
  write(disk, {"tensorboard"}, {make_event(EventKind::step, 1, {{"loss", 2.5}}), make_event(EventKind::eval, 1, {{"eval_loss", 0.5}}),
                                sample, make_event(EventKind::warning, 1, {}, "left out")});
  write(disk, {"tensorboard"}, {make_event(EventKind::step, 1, {{"loss", 2.5}})});
  const std::vector<std::string> names = disk.list("/out/events");
  EXPECT_EQ(names, (std::vector<std::string>{"events.out.tfevents.1700000001.1.inlaid", "events.out.tfevents.1700000001.inlaid"}))
      << "one file per process, even within a second";
  const std::vector<std::string> found = records(read_text(disk, "/out/events/events.out.tfevents.1700000001.inlaid"));
  ASSERT_EQ(found.size(), 4u);
  EXPECT_NE(found[0].find("brain.Event:2"), std::string::npos);
  // Event{wall_time=1: 1700000001.5, step=2: 1, summary=5{value=1{tag=1: "train/loss", simple_value=2: 2.5}}}
  const double time = 1700000001.5;
  const float loss = 2.5;
  std::string wanted("\x09", 1);
  wanted.append(reinterpret_cast<const char*>(&time), 8);
  wanted += std::string("\x10\x01\x2a\x13\x0a\x11\x0a\x0a", 8) + "train/loss" + "\x15";
  wanted.append(reinterpret_cast<const char*>(&loss), 4);
  EXPECT_EQ(found[1], wanted);
  EXPECT_NE(found[2].find("eval/loss"), std::string::npos);
  for (const char* part : {"sample/a question", "text", "the answer"}) EXPECT_NE(found[3].find(part), std::string::npos) << part;
}

// A queue that is closed before a done event came gives out the one that it was closed with, and only then ends.
TEST(EventQueue, TheLastEventIsDone) {
  for (const bool pushed : {true, false}) {
    EventQueue queue(4);
    Event step;
    step.kind = EventKind::step;
    queue.push(queue.number(step));
    Event done;
    done.kind = EventKind::done;
    done.text = "done";
    if (pushed) queue.push(queue.number(done));
    const auto last = std::make_shared<Event>();
    last->kind = EventKind::done;
    last->text = "failed";
    queue.close(last);
    bool ended = false;
    EXPECT_EQ(queue.pop(0, &ended)->kind, EventKind::step);
    const std::shared_ptr<const Event> event = queue.pop(0, &ended);
    ASSERT_NE(event, nullptr);
    EXPECT_FALSE(ended);
    EXPECT_EQ(event->text, pushed ? "done" : "failed");
    EXPECT_EQ(event->sequence, 2u);
    EXPECT_EQ(queue.pop(0, &ended), nullptr);
    EXPECT_TRUE(ended);
  }
}

}  // namespace
}  // namespace inlaid::train
