// TensorBoard's event files: a sequence of records, each
//   u64 length, u32 masked CRC-32C of those 8 bytes, the bytes, u32 masked CRC-32C of the bytes      (little-endian)
// where a record is a serialised Event (tensorboard.proto) and the first one names the file's version
// (tensorboard/summary/writer/record_writer.py, event_file_writer.py). masked(c) = rotate right(c, 15) + 0xa282ead8.
#include <array>
#include <cmath>
#include <cstring>

#include "inlaid/train/tensorboard.pb.h"
#include "sdk/base/error.h"
#include "sdk/base/hash.h"
#include "sdk/train/event_writer.h"

namespace inlaid::train {
namespace {

void put(std::string* out, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) *out += static_cast<char>(value >> (8 * i) & 0xff);
}

uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(0, std::as_bytes(std::span(bytes.data(), bytes.size())));
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

class TensorBoardWriter : public EventWriter {
 public:
  TensorBoardWriter(FileSystem& files, const std::string& folder) : files_(files), folder_(folder) {
    files_.make_folders(folder_);
  }

  void write(const Event& event) override {
    tensorboard::Event out;
    out.set_wall_time(event.time);
    out.set_step(event.step);
    if (event.kind == EventKind::step || event.kind == EventKind::eval) {
      const char* group = event.kind == EventKind::step ? "train/" : "eval/";
      for (const auto& [name, value] : event.metrics) {
        tensorboard::Summary::Value* entry = out.mutable_summary()->add_value();
        entry->set_tag(group + (name.starts_with("eval_") ? name.substr(5) : name));
        entry->set_simple_value(static_cast<float>(value));
      }
    } else if (event.kind == EventKind::sample) {
      tensorboard::Summary::Value* entry = out.mutable_summary()->add_value();
      entry->set_tag("sample/" + event.prompt);
      entry->mutable_metadata()->mutable_plugin_data()->set_plugin_name("text");
      constexpr int32_t kString = 7;
      entry->mutable_tensor()->set_dtype(kString);
      entry->mutable_tensor()->add_string_val(event.text);
    } else {
      return;
    }
    if (file_ == nullptr) open(event.time);
    record(out);
  }

  void close() override {
    if (file_ != nullptr) file_->close();
  }

 private:
  // Readers take all files of a folder in the order of their names.
  void open(double time) {
    const std::string stem = join_path(folder_, "events.out.tfevents." + std::to_string(static_cast<int64_t>(time)));
    std::string path = stem + ".inlaid";
    for (int n = 1; files_.exists(path); ++n) path = stem + "." + std::to_string(n) + ".inlaid";
    file_ = files_.create(path);
    tensorboard::Event version;
    version.set_wall_time(time);
    version.set_file_version("brain.Event:2");
    record(version);
  }

  void record(const tensorboard::Event& event) {
    std::string bytes;
    if (!event.SerializeToString(&bytes)) fail(Code::kInternal, "an event could not be serialised");
    std::string out;
    put(&out, bytes.size(), 8);
    put(&out, masked_crc(out), 4);
    out += bytes;
    put(&out, masked_crc(bytes), 4);
    file_->write(std::as_bytes(std::span(out.data(), out.size())));
  }

  FileSystem& files_;
  std::string folder_;
  std::unique_ptr<WritableFile> file_;
};

}  // namespace

std::unique_ptr<EventWriter> open_tensorboard_writer(FileSystem& files, const std::string& folder) {
  return std::make_unique<TensorBoardWriter>(files, folder);
}

}  // namespace inlaid::train
