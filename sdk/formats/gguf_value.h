// One value of GGUF metadata, and how it is read from and written to bytes. Layout (GGUF v3, little-endian):
// u32 type, then the value; a string is u64 length and bytes; an array is u32 element type, u64 count,
// elements. Arrays of arrays, which no model uses, are refused.
#ifndef INLAID_SDK_FORMATS_GGUF_VALUE_H_
#define INLAID_SDK_FORMATS_GGUF_VALUE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sdk/base/file_system.h"

namespace inlaid::formats {

enum class GgufType : uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};
const char* gguf_type_name(GgufType type);

// Integers of all widths are held as 64 bits of their signedness, numbers as double (f32 widens exactly).
struct GgufValue {
  using Data =
      std::variant<bool, uint64_t, int64_t, double, std::string, std::vector<bool>, std::vector<uint64_t>,
                   std::vector<int64_t>, std::vector<double>, std::vector<std::string>>;
  GgufType type = GgufType::u32;  // of the value, or of the elements of an array
  bool array = false;
  Data data;
};

// Reads a file from front to back through a buffer of 1 MiB, never past its end: every length is compared
// with the bytes that are left before memory is taken. Errors are kDataLoss and name path and position.
class GgufCursor {
 public:
  explicit GgufCursor(const ReadableFile& file) : file_(file), size_(file.size()) {}
  uint64_t position() const { return position_; }
  uint64_t left() const { return size_ - position_; }
  const std::string& path() const { return file_.path(); }

  template <typename T>
  T number() {
    T value;
    take(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  std::string text();
  // A count of things that take at least `bytes_each`: kDataLoss if the file cannot hold so many.
  uint64_t count(uint64_t bytes_each, const char* what);
  GgufValue value();

 private:
  void take(std::span<std::byte> out);
  const ReadableFile& file_;
  uint64_t size_;
  uint64_t position_ = 0;
  std::vector<std::byte> buffer_;
  uint64_t buffer_begin_ = 0;
};

// Appends to a header that is being built.
void append_text(std::string& out, std::string_view text);
void append_value(std::string& out, const GgufValue& value);  // type and value
template <typename T>
void append_number(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace inlaid::formats

#endif  // INLAID_SDK_FORMATS_GGUF_VALUE_H_
