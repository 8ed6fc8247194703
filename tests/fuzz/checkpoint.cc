// Checkpoints. Parts: the manifest (without its seal), the index of its writer, the shard, index.json of the folder.
//
// Checksums and digests would end every changed input at the door, so this target puts them right: the seal of the manifest,
// and the size and digest of an index that the manifest names. What lies behind them comes from outside as well.
#include "sdk/checkpoint/checkpoint.h"

#include "inlaid/checkpoint/v1/manifest.pb.h"
#include "sdk/base/hash.h"
#include "sdk/base/json.h"
#include "sdk/base/testing/memory_file_system.h"
#include "sdk/checkpoint/manifest_file.h"
#include "tests/fuzz/check.h"

namespace {

using namespace inlaid;
namespace v1 = checkpoint::v1;

constexpr const char* kFolder = "out/checkpoints/step-000012";

void read_everything(FileSystem& fs) {
  const std::unique_ptr<checkpoint::Reader> reader = checkpoint::Reader::open(fs, kFolder);
  FUZZ_REQUIRE(parse_json(reader->manifest_json(), "manifest").is_object());
  for (const checkpoint::Record& record : reader->records()) {
    std::vector<std::byte> bytes(static_cast<size_t>(byte_count(record.dtype, record.shape)));
    fuzz::accepts([&] { reader->read(record.name, record.role, bytes); });
  }
  // A manifest that is read can be written again and says the same.
  const v1::Manifest manifest = checkpoint::parse_manifest(reader->manifest_bytes(), "manifest");
  const std::string sealed = checkpoint::seal_manifest(manifest);
  FUZZ_REQUIRE(checkpoint::seal_manifest(checkpoint::parse_manifest(sealed, "again")) == sealed);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<std::string> parts = fuzz::parts_of(data, size, 4);
  testing::MemoryFileSystem fs;
  const auto put = [&](const std::string& name, const std::string& bytes) {
    fuzz::put_file(fs, join_path(kFolder, name), bytes);
  };
  put("index-00000.pb", parts[1]);
  put("state-00000-00000.safetensors", parts[2]);
  if (!parts[3].empty()) fuzz::put_file(fs, "out/checkpoints/index.json", parts[3]);
  v1::Manifest manifest;
  std::string bytes = parts[0];
  if (manifest.ParseFromString(parts[0])) {
    for (v1::Writer& writer : *manifest.mutable_writers()) {
      if (writer.index_file() != "index-00000.pb") continue;
      writer.set_index_bytes(parts[1].size());
      writer.set_index_sha256(sha256_hex(parts[1]));
    }
    if (!fuzz::accepts([&] { bytes = checkpoint::seal_manifest(manifest); })) return 0;
  }
  put("manifest.pb", bytes);
  fuzz::accepts([&] { read_everything(fs); });
  fuzz::accepts([&] { FUZZ_REQUIRE(to_text(checkpoint::verify(fs, kFolder)).starts_with("{\"ok\":")); });
  fuzz::accepts([&] { checkpoint::latest_checkpoint(fs, "out/checkpoints"); });
  fuzz::accepts([&] { checkpoint::best_checkpoint(fs, "out/checkpoints"); });
  fuzz::accepts([&] { checkpoint::prune(fs, "out/checkpoints", 1); });
  return 0;
}
