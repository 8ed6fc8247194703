// Files cut into rows, as a stream: memory is one buffer and one row, however long the file is.
//
// lines: *.jsonl, *.ndjson, or a file whose first character is `{`. A row is a line that is not blank, its
//     number is that of the line, from 1.
// array: another file whose first character is `[`. A row is an element, numbered from 1.
// text: *.txt. A row is a document, its number that of its first line, from 1.
//
// Text files: one document per paragraph, that is a run of lines between blank ones, joined by newlines. (One
// document per file would be refused as too long for nearly every file.) A byte order mark at the start of a
// file and carriage returns before newlines are not part of any row.
//
// The cut needs no full parse: in an array only strings, escapes and nesting are followed. A row that is
// malformed inside is found by the strict parser later and does not disturb the next one; damage to the array
// itself ends the file. Tests: row_reader_test.cc.
#ifndef INLAID_SDK_DATA_ROW_READER_H_
#define INLAID_SDK_DATA_ROW_READER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sdk/base/file_system.h"
#include "sdk/base/hash.h"

namespace inlaid::data {

// Longest row in bytes; equals what the tokenizer takes as one text.
constexpr uint64_t kMaxRowBytes = uint64_t{64} << 20;

struct RawRow {
  int64_t number = 0;
  std::string text;        // empty when there is an error
  std::string error;       // why there is no text
  bool ends_file = false;  // the error makes the rest of the file unreadable
};

enum class Container { kLines, kArray, kText };
const char* container_name(Container container);  // jsonl, json, text

class RowReader {
 public:
  // kInvalidArgument for a file that is none of the three containers.
  RowReader(FileSystem& fs, const std::string& path, uint64_t max_row_bytes = kMaxRowBytes);
  Container container() const { return container_; }
  // The next row; false at the end of the file.
  bool next(RawRow* row);
  // SHA-256 of the whole file; valid once, after next() gave false.
  std::string sha256() { return hash_.hex(); }

 private:
  int peek();  // next byte, or -1 at the end
  void skip() { ++at_; }
  void skip_space();
  bool next_line(RawRow* row);
  bool next_element(RawRow* row);
  bool next_document(RawRow* row);
  // Reads the rest of the line without its end into *line; false at the end of the file. `too_long` says that
  // it was skipped.
  bool read_line(std::string* line, bool* too_long);
  bool end_with(RawRow* row, std::string error);
  std::string too_long_reason() const;
  void refill();

  std::unique_ptr<ReadableFile> file_;
  uint64_t max_row_bytes_;
  Sha256 hash_;
  std::vector<char> buffer_;
  size_t at_ = 0, filled_ = 0;  // unread bytes are buffer_[at_, filled_)
  uint64_t offset_ = 0;         // of the byte after the buffer
  Container container_ = Container::kLines;
  int64_t number_ = 0;   // of the last line or element
  bool closed_ = false;  // the array's closing bracket was read
  bool done_ = false;
};

}  // namespace inlaid::data

#endif  // INLAID_SDK_DATA_ROW_READER_H_
