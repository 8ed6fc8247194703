#include "sdk/data/row_reader.h"

#include <algorithm>  // for min
#include <cctype>
#include <cstring>  // for memchr
#include <span>
#include <string_view>
#include <utility>

#include "sdk/base/error.h"

namespace inlaid::data {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 18;

bool is_space(int c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool is_blank(std::string_view line) {
  for (const char c : line) {
    if (!is_space(static_cast<unsigned char>(c))) return false;
  }
  return true;
}

std::string lower_extension(const std::string& path) {
  const std::string name = base_name(path);
  const size_t dot = name.rfind('.');
  std::string extension = dot == std::string::npos ? "" : name.substr(dot + 1);
  for (char& c : extension) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return extension;
}

}  // namespace

const char* container_name(Container container) {
  switch (container) {
    case Container::kLines:
      return "jsonl";
    case Container::kArray:
      return "json";
    case Container::kText:
      return "text";
  }
  return "";
}

RowReader::RowReader(FileSystem& fs, const std::string& path, uint64_t max_row_bytes)
    : file_(fs.open(path)), max_row_bytes_(max_row_bytes), buffer_(kBufferBytes) {
  refill();
  if (std::string_view(buffer_.data(), filled_).starts_with("\xEF\xBB\xBF")) at_ = 3;
  const std::string extension = lower_extension(path);
  if (extension == "txt") {
    container_ = Container::kText;
    return;
  }
  const bool lines = extension == "jsonl" || extension == "ndjson";
  if (lines) return;
  // White space before the array or the first row does not move line numbers that matter: an array counts
  // elements, and for lines it is counted here.
  while (is_space(peek())) {
    if (peek() == '\n') ++number_;
    skip();
  }
  const int first = peek();
  if (first == '[') {
    skip();
    container_ = Container::kArray;
    number_ = 0;
  } else if (first != '{' && first != -1) {
    fail(Code::kInvalidArgument, path,
         ": not a data file: expected *.txt, JSON lines (`{...}` on each line) or a JSON array ",
         "(`[{...}, ...]`)");
  }
}

void RowReader::refill() {
  const uint64_t rest = file_->size() - offset_;
  filled_ = static_cast<size_t>(std::min<uint64_t>(rest, buffer_.size()));
  at_ = 0;
  if (filled_ == 0) return;
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(buffer_.data(), filled_));
  file_->read_at(offset_, bytes);
  hash_.update(bytes);
  offset_ += filled_;
}

int RowReader::peek() {
  if (at_ == filled_) refill();
  return at_ == filled_ ? -1 : static_cast<unsigned char>(buffer_[at_]);
}

void RowReader::skip_space() {
  while (is_space(peek())) skip();
}

bool RowReader::read_line(std::string* line, bool* too_long) {
  line->clear();
  *too_long = false;
  if (peek() == -1) return false;
  ++number_;
  bool ended = false;
  while (!ended && peek() != -1) {
    const char* begin = buffer_.data() + at_;
    const void* newline = std::memchr(begin, '\n', filled_ - at_);
    const size_t length =
        newline != nullptr ? static_cast<size_t>(static_cast<const char*>(newline) - begin) : filled_ - at_;
    if (line->size() + length > max_row_bytes_) *too_long = true;
    if (!*too_long) line->append(begin, length);
    ended = newline != nullptr;
    at_ += length + (ended ? 1 : 0);
  }
  if (*too_long) line->clear();
  if (line->ends_with('\r')) line->pop_back();
  return true;
}

bool RowReader::next_line(RawRow* row) {
  bool too_long = false;
  while (read_line(&row->text, &too_long)) {
    if (too_long) row->error = too_long_reason();
    if (too_long || !is_blank(row->text)) {
      row->number = number_;
      return true;
    }
  }
  return false;
}

bool RowReader::next_document(RawRow* row) {
  std::string line;
  bool too_long = false;
  bool open = false;
  while (read_line(&line, &too_long)) {
    if (!too_long && is_blank(line)) {
      if (open) break;
      continue;
    }
    if (!open) row->number = number_;
    if (too_long || row->text.size() + line.size() + 1 > max_row_bytes_) row->error = too_long_reason();
    if (row->error.empty()) {
      if (open) row->text += '\n';
      row->text += line;
    }
    open = true;
  }
  if (!row->error.empty()) row->text.clear();
  return open;
}

std::string RowReader::too_long_reason() const {
  return "longer than " + std::to_string(max_row_bytes_) + " bytes";
}

bool RowReader::end_with(RawRow* row, std::string error) {
  row->text.clear();
  row->error = std::move(error);
  row->number = number_;
  row->ends_file = true;
  done_ = true;
  return true;
}

bool RowReader::next_element(RawRow* row) {
  skip_space();
  if (peek() == ']' && number_ == 0) {
    skip();
    closed_ = true;
  }
  if (closed_) {
    skip_space();
    return peek() != -1 && end_with(row, "text after the end of the JSON array");
  }
  row->number = ++number_;
  int64_t depth = 0;
  bool in_string = false, escaped = false, too_long = false;
  for (;; skip()) {
    const int c = peek();
    if (c == -1)
      return end_with(row, "the JSON array does not end: the file is cut off or a bracket is missing");
    if (!in_string && depth == 0 && (c == ',' || c == ']')) break;
    if (in_string) {
      in_string = escaped || c != '"';
      escaped = !escaped && c == '\\';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (--depth < 0) return end_with(row, "a closing bracket without an opening one");
    }
    too_long = too_long || row->text.size() >= max_row_bytes_;
    if (!too_long) row->text += static_cast<char>(c);
  }
  while (!row->text.empty() && is_space(static_cast<unsigned char>(row->text.back()))) row->text.pop_back();
  closed_ = peek() == ']';
  skip();
  if (row->text.empty())
    row->error = "an element is missing between two commas or before the end of the array";
  if (too_long) {
    row->text.clear();
    row->error = too_long_reason();
  }
  return true;
}

bool RowReader::next(RawRow* row) {
  row->text.clear();
  row->error.clear();
  row->ends_file = false;
  if (done_) return false;
  bool found = false;
  switch (container_) {
    case Container::kLines:
      found = next_line(row);
      break;
    case Container::kArray:
      found = next_element(row);
      break;
    case Container::kText:
      found = next_document(row);
      break;
  }
  if (!found) done_ = true;
  return found;
}

}  // namespace inlaid::data
