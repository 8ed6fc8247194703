#include "sdk/data/row_reader.h"

#include <gtest/gtest.h>

#include "sdk/data/testing/support.h"

namespace inlaid::data {
namespace {

using testing::error_of;
using testing::write_file;

// All rows of a file with this name and these bytes, as "number=text" or "number!error".
std::vector<std::string> rows(const std::string& name, std::string_view bytes, uint64_t most = kMaxRowBytes) {
  inlaid::testing::MemoryFileSystem fs;
  write_file(fs, name, bytes);
  RowReader reader(fs, name, most);
  std::vector<std::string> out;
  RawRow row;
  bool damaged = false;
  while (reader.next(&row)) {
    damaged = row.ends_file;
    EXPECT_TRUE(row.error.empty() || row.text.empty());
    out.push_back(std::to_string(row.number) + (row.error.empty() ? "=" + row.text : "!" + row.error));
  }
  EXPECT_FALSE(reader.next(&row));
  if (!damaged) {
    EXPECT_EQ(reader.sha256(), sha256_hex(bytes));
  }
  return out;
}
using Rows = std::vector<std::string>;

TEST(RowReader, CutsLines) {
  EXPECT_EQ(rows("a.jsonl", "{1}\n{2}\n"), (Rows{"1={1}", "2={2}"}));
  EXPECT_EQ(rows("a.jsonl", "{1}\r\n\r\n  \n{2}"), (Rows{"1={1}", "4={2}"}));
  EXPECT_EQ(rows("a.JSONL", "\xEF\xBB\xBF{1}\n"), (Rows{"1={1}"}));
  EXPECT_EQ(rows("a.jsonl", ""), (Rows{}));
  EXPECT_EQ(rows("a.jsonl", "\n \n"), (Rows{}));
  EXPECT_EQ(rows("a.jsonl", "[1]\n"), (Rows{"1=[1]"}));  // the name says lines
  EXPECT_EQ(rows("a.data", "\n{1}\n{2}"), (Rows{"2={1}", "3={2}"}));
  EXPECT_EQ(rows("a.json", "{1}\n{2}"), (Rows{"1={1}", "2={2}"}));
  EXPECT_EQ(rows("a.json", ""), (Rows{}));
}

TEST(RowReader, CutsArrays) {
  EXPECT_EQ(rows("a.json", "[{\"a\": [1, {}]} , {\"b\": 2}\n]\n"),
            (Rows{"1={\"a\": [1, {}]}", "2={\"b\": 2}"}));
  EXPECT_EQ(rows("a.json", R"( [ {"a": "],[}{\"," } ] )"), (Rows{R"(1={"a": "],[}{\"," })"}));
  EXPECT_EQ(rows("a.json", R"([{"a": "\\"}, 3])"), (Rows{R"(1={"a": "\\"})", "2=3"}));
  EXPECT_EQ(rows("a.json", "[]"), (Rows{}));
  EXPECT_EQ(rows("a.json", "[1,]"),
            (Rows{"1=1", "2!an element is missing between two commas or before the end of the array"}));
  EXPECT_EQ(rows("a.json", "[1,,2]").size(), 3u);
  EXPECT_EQ(rows("a.json", "[1, {\"a\": 2"),
            (Rows{"1=1", "2!the JSON array does not end: the file is cut off or a bracket is missing"}));
  EXPECT_EQ(rows("a.json", "[1] x"), (Rows{"1=1", "1!text after the end of the JSON array"}));
  EXPECT_EQ(rows("a.json", "[] x"), (Rows{"0!text after the end of the JSON array"}));
  EXPECT_EQ(rows("a.json", "[1, }]"), (Rows{"1=1", "2!a closing bracket without an opening one"}));
}

TEST(RowReader, CutsTextIntoDocuments) {
  EXPECT_EQ(rows("a.txt", "one\ntwo\r\n\n\n  \nthree"), (Rows{"1=one\ntwo", "6=three"}));
  EXPECT_EQ(rows("a.txt", "\n\n"), (Rows{}));
  EXPECT_EQ(rows("a.TXT", "[x]\n"), (Rows{"1=[x]"}));
}

TEST(RowReader, RefusesOtherFiles) {
  inlaid::testing::MemoryFileSystem fs;
  write_file(fs, "a.csv", "x,y\n");
  const Error e = error_of([&] { RowReader(fs, "a.csv"); });
  EXPECT_EQ(e.code(), Code::kInvalidArgument);
  EXPECT_EQ(e.message(),
            "a.csv: not a data file: expected *.txt, JSON lines (`{...}` on each line) or a JSON array "
            "(`[{...}, ...]`)");
}

// Rows that cross the reader's buffer, and rows that are too long, which must not disturb the next.
TEST(RowReader, ReadsRowsOfAnyLength) {
  const std::string large(600000, 'x');
  EXPECT_EQ(rows("a.jsonl", large + "\nb\n"), (Rows{"1=" + large, "2=b"}));
  EXPECT_EQ(rows("a.json", "[\"" + large + "\",2]"), (Rows{"1=\"" + large + "\"", "2=2"}));
  const std::string huge(300001, 'x');
  EXPECT_EQ(rows("a.jsonl", huge + "\nb\n", 300001), (Rows{"1=" + huge, "2=b"}));
  EXPECT_EQ(rows("a.jsonl", huge + "\nb\n", 300000), (Rows{"1!longer than 300000 bytes", "2=b"}));
  EXPECT_EQ(rows("a.txt", "a\n" + huge + "\nc\n\nb\n", 300000), (Rows{"1!longer than 300000 bytes", "5=b"}));
  EXPECT_EQ(rows("a.txt", "abc\ndef\n\nb\n", 6), (Rows{"1!longer than 6 bytes", "4=b"}));
  EXPECT_EQ(rows("a.json", "[\"" + huge + "\",2]", 300000), (Rows{"1!longer than 300000 bytes", "2=2"}));
  EXPECT_EQ(rows("a.json", "[123,1234]", 3), (Rows{"1=123", "2!longer than 3 bytes"}));
}

}  // namespace
}  // namespace inlaid::data
