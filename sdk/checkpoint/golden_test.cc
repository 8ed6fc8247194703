// Checkpoints of every released version stay readable: tests/golden/checkpoint/vX.Y, made by checkpoint_sample.
#include <gtest/gtest.h>

#include "sdk/checkpoint/testing/sample.h"

namespace inlaid::checkpoint {
namespace {

TEST(GoldenTest, CheckpointOfVersion01IsRead) {
  const std::string folder = INLAID_SOURCE_DIR "/tests/golden/checkpoint/v0.1";
  FileSystem& fs = posix_file_system();
  EXPECT_EQ(testing::difference_from_sample(fs, folder, 7), "");
  EXPECT_EQ(to_text(verify(fs, folder)), R"({"ok":true,"tensors":9,"bytes":694,"problems":[]})");
  const Json manifest = parse_json(Reader::open(fs, folder)->manifest_json(), "manifest");
  EXPECT_EQ(manifest["producer"], "inlaid 0.1.0");
  EXPECT_EQ(manifest["shards"].size(), 3u);
}

}  // namespace
}  // namespace inlaid::checkpoint
