#include "sdk/data/glob.h"

#include <gtest/gtest.h>

#include "sdk/data/testing/support.h"

namespace inlaid::data {
namespace {

using testing::error_of;
using testing::write_file;
using Paths = std::vector<std::string>;

TEST(Glob, MatchesOneComponent) {
  EXPECT_TRUE(matches_component("*.jsonl", "a.jsonl"));
  EXPECT_TRUE(matches_component("*.jsonl", "a.b.jsonl"));
  EXPECT_FALSE(matches_component("*.jsonl", "a.jsonl.gz"));
  EXPECT_TRUE(matches_component("part-??.json", "part-07.json"));
  EXPECT_FALSE(matches_component("part-??.json", "part-7.json"));
  EXPECT_TRUE(matches_component("?.txt", "\xE6\x9D\xB1.txt"));  // one character of three bytes
  EXPECT_TRUE(matches_component("[a-c]1", "b1"));
  EXPECT_FALSE(matches_component("[a-c]1", "d1"));
  EXPECT_TRUE(matches_component("[!a-c]1", "d1"));
  EXPECT_FALSE(matches_component("[!a-c]1", "b1"));
  EXPECT_TRUE(matches_component("[]]x", "]x"));
  EXPECT_TRUE(matches_component("[ab", "[ab"));  // a set that does not end is ordinary text
  EXPECT_TRUE(matches_component("*a*b*", "xxaxxbxx"));
  EXPECT_FALSE(matches_component("*a*b*", "xxbxxaxx"));
  EXPECT_FALSE(matches_component("*", ".hidden"));
  EXPECT_TRUE(matches_component(".*", ".hidden"));
  EXPECT_TRUE(matches_component("**", "a"));
  // Many stars cost no more than the product of the lengths.
  EXPECT_FALSE(matches_component(std::string(200, '*') + "b", std::string(5000, 'a')));
}

TEST(Glob, FindsFilesInByteOrder) {
  inlaid::testing::MemoryFileSystem fs;
  for (const char* path :
       {"d/b.jsonl", "d/a.jsonl", "d/B.jsonl", "d/a.txt", "d/x/1.jsonl", "d/y/1.jsonl", "d/z[1].jsonl"}) {
    write_file(fs, path, "x");
  }
  EXPECT_EQ(expand_glob(fs, "d/?.jsonl"), (Paths{"d/B.jsonl", "d/a.jsonl", "d/b.jsonl"}));
  EXPECT_EQ(expand_glob(fs, "d/*/1.jsonl"), (Paths{"d/x/1.jsonl", "d/y/1.jsonl"}));
  EXPECT_EQ(expand_glob(fs, "*/a.txt"), (Paths{"d/a.txt"}));
  EXPECT_EQ(expand_glob(fs, "/d/a.*"), (Paths{"/d/a.jsonl", "/d/a.txt"}));
  EXPECT_EQ(expand_glob(fs, "d/a.txt"), (Paths{"d/a.txt"}));
  EXPECT_EQ(expand_glob(fs, "d/z[1].jsonl"), (Paths{"d/z[1].jsonl"}));  // exists as it is written
}

TEST(Glob, SaysWhatIsWrong) {
  inlaid::testing::MemoryFileSystem fs;
  write_file(fs, "d/a.jsonl", "x");
  write_file(fs, "d/\xFF.txt", "x");
  EXPECT_EQ(error_of([&] { expand_glob(fs, "d/b.jsonl"); }).message(),
            "data source 'd/b.jsonl': no such file");
  EXPECT_EQ(error_of([&] { expand_glob(fs, "d/*.json"); }).message(),
            "data source 'd/*.json': the pattern matches no file");
  EXPECT_EQ(error_of([&] { expand_glob(fs, "d"); }).message(),
            "data source 'd' is a folder; name a file or a pattern such as 'd/*.jsonl'");
  EXPECT_EQ(error_of([&] { expand_glob(fs, "d/*.txt"); }).message(),
            "data source 'd/*.txt' matches a file whose name is not UTF-8; rename it");
  EXPECT_EQ(error_of([&] { expand_glob(fs, ""); }).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace inlaid::data
