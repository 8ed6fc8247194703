// Checkpoints on disk: a folder with manifest.pb (protobuf, inlaid/checkpoint/v1/manifest.proto), one index file per writer
// (index-00000.pb) and raw safetensors shards. A checkpoint exists once its folder has its final name: everything is
// written under a temporary name, synced, and renamed; an older checkpoint is never touched before that.
//
// One job at a time writes into a folder of checkpoints. Reading needs no lock: what has a final name does not change.
#ifndef INLAID_SDK_CHECKPOINT_CHECKPOINT_H_
#define INLAID_SDK_CHECKPOINT_CHECKPOINT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sdk/base/file_system.h"
#include "sdk/base/json.h"
#include "sdk/tensor/tensor.h"

namespace inlaid::checkpoint {

inline constexpr char kManifestFile[] = "manifest.pb";  // what makes a folder a checkpoint

enum class Role : int32_t { kWeight = 1, kMoment1 = 2, kMoment2 = 3 };

// One tensor of state. On one rank the box is the whole tensor; the fields that describe boxes and flat ranges of a sharded
// job are in the index's proto and are written as the whole.
struct Record {
  std::string name;  // logical name of the parameter, for example "model.layers.0.mlp.up_proj.weight"
  Role role = Role::kWeight;
  DType dtype = DType::f32;
  Shape shape;
  const void* data = nullptr;  // save: contiguous bytes; valid during the call
};

// What a manifest says beside its tensors.
struct Info {
  int64_t step = 0;
  int64_t epoch = 0, index = 0;    // data cursor
  std::string config_json;         // canonical job configuration
  std::string model_config_json;   // config.json of the model
  std::string base_path, base_identity;          // frozen base under an adapter; "" when the weights are inside
  std::string dataset_identity, tokenizer_sha256, template_sha256;
  std::string state_json;          // trainer state beyond tensors: counters, best metric, last losses
  std::string adapter_config_json; // PEFT configuration under an adapter; ""
  // Small files that make the checkpoint self-contained (tokenizer.json, ...), name -> bytes; "" values are not written.
  std::vector<std::pair<std::string, std::string>> extra_files;
};

// Writes `folder` (its parent exists). kAlreadyExists if it does. Checked against `cancel` between tensors: kCancelled, and
// nothing stays behind. Shards are cut at about `shard_bytes`.
void save(FileSystem& fs, const std::string& folder, const Info& info, const std::vector<Record>& records,
          const std::atomic<bool>* cancel = nullptr, uint64_t shard_bytes = uint64_t{1} << 30);

class Reader {
 public:
  // Reads manifest and index files, checks versions, hashes of index files, names, shapes, offsets against file sizes.
  // kNotFound, kDataLoss, kFailedPrecondition for a newer min_reader_version.
  static std::unique_ptr<Reader> open(FileSystem& fs, const std::string& folder);
  virtual ~Reader() = default;
  virtual const Info& info() const = 0;                    // extra_files with contents
  virtual const std::vector<Record>& records() const = 0;  // data == nullptr
  // Fills `out` with the record's bytes and checks its checksum. kNotFound, kDataLoss naming file and tensor.
  virtual void read(const std::string& name, Role role, std::span<std::byte> out) const = 0;
  virtual std::string manifest_bytes() const = 0;
  virtual std::string manifest_json() const = 0;  // rendering for people and tools, tensor table included
};

// Checks every file's size and every tensor's checksum: {"ok": bool, "tensors": n, "bytes": n, "problems": [text...]}.
// Damage is content of the report; only a folder that is not there is an error.
Json verify(FileSystem& fs, const std::string& folder);

// The folder of checkpoints of a run (OUT/checkpoints): names "step-000123" and index.json {"latest": ..., "best": ...},
// written atomically. Where index.json is missing, damaged or one behind, the latest comes from the folders that are whole.
std::string checkpoint_name(int64_t step);
std::string latest_checkpoint(FileSystem& fs, const std::string& folder);  // path, "" when there is none
std::string best_checkpoint(FileSystem& fs, const std::string& folder);    // path of the best that is recorded and whole, or ""
void record_latest(FileSystem& fs, const std::string& folder, const std::string& name);
// The names of the best ones, the best first; those of them that are not there are left out.
void record_best(FileSystem& fs, const std::string& folder, const std::vector<std::string>& names);
// Removes one checkpoint; a crash in between leaves it whole or gone.
void remove(FileSystem& fs, const std::string& folder, const std::string& name);
// Keeps the `keep` newest (0 = all), `latest` and the best ones, and removes the others, damaged ones first; and leftovers of
// interrupted saves.
void prune(FileSystem& fs, const std::string& folder, int64_t keep);

}  // namespace inlaid::checkpoint

#endif  // INLAID_SDK_CHECKPOINT_CHECKPOINT_H_
