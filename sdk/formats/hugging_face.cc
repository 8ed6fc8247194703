#include "sdk/formats/hugging_face.h"

#include <algorithm>
#include <map>

#include "sdk/base/error.h"
#include "sdk/formats/fused.h"
#include "sdk/formats/identity.h"
#include "sdk/formats/safetensors.h"
#include "sdk/formats/sentencepiece_model.h"
#include "sdk/formats/tokenizer_config.h"

namespace inlaid::formats {
namespace {

constexpr uint64_t kMaxJson = uint64_t{256} << 20;
constexpr size_t kMaxShards = 10'000;

// Several safetensors files as one source.
class ShardedSource : public WeightSource {
 public:
  explicit ShardedSource(std::vector<std::unique_ptr<SafetensorsFile>> shards) : shards_(std::move(shards)) {
    for (size_t s = 0; s < shards_.size(); ++s) {
      for (size_t i = 0; i < shards_[s]->tensors().size(); ++i) places_.push_back({s, i});
    }
    const auto tensor = [&](const Place& place) -> const StoredTensor& {
      return shards_[place.shard]->tensors()[place.index];
    };
    std::sort(places_.begin(), places_.end(),
              [&](const Place& a, const Place& b) { return tensor(a).name < tensor(b).name; });
    for (const Place& place : places_) {
      if (!tensors_.empty() && tensors_.back().name == tensor(place).name) {
        fail(Code::kDataLoss, tensor(place).file, ": tensor '", tensor(place).name, "' is also in ",
             tensors_.back().file);
      }
      tensors_.push_back(tensor(place));
    }
  }

  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  void read(size_t index, std::span<std::byte> out) const override {
    const Place& place = places_.at(index);
    shards_[place.shard]->read(place.index, out);
  }

 private:
  struct Place {
    size_t shard, index;
  };
  std::vector<std::unique_ptr<SafetensorsFile>> shards_;
  std::vector<Place> places_;
  std::vector<StoredTensor> tensors_;
};

std::unique_ptr<WeightSource> open_shards(FileSystem& fs, const std::string& folder,
                                          const std::string& index_path, std::vector<std::string>& files) {
  const Json index = read_json_object(fs, index_path, true);
  const auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object()) {
    fail(Code::kDataLoss, index_path, ": key 'weight_map' must be an object of tensor names and files");
  }
  std::map<std::string, std::vector<std::string>> by_file;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string())
      fail(Code::kDataLoss, index_path, ": the file of tensor '", tensor, "' must be a text");
    check_plain_name(file.get<std::string>(), index_path);
    by_file[file.get<std::string>()].push_back(tensor);
    if (by_file.size() > kMaxShards) fail(Code::kDataLoss, index_path, ": more than ", kMaxShards, " shards");
  }
  std::vector<std::unique_ptr<SafetensorsFile>> shards;
  for (const auto& [file, names] : by_file) {
    const std::string path = join_path(folder, file);
    auto shard = std::make_unique<SafetensorsFile>(fs, path);
    const auto& there = shard->tensors();
    for (const std::string& name : names) {
      const auto found =
          std::lower_bound(there.begin(), there.end(), name,
                           [](const StoredTensor& tensor, const std::string& n) { return tensor.name < n; });
      if (found == there.end() || found->name != name) {
        fail(Code::kDataLoss, path, ": tensor '", name, "' is missing; ", index_path,
             " says that it is here");
      }
    }
    shards.push_back(std::move(shard));
    files.push_back(path);
  }
  return std::make_unique<ShardedSource>(std::move(shards));
}

std::unique_ptr<WeightSource> open_weights(FileSystem& fs, const std::string& folder,
                                           std::vector<std::string>& files) {
  const std::string single = join_path(folder, "model.safetensors");
  if (fs.exists(single)) {
    files.push_back(single);
    return open_safetensors(fs, single);
  }
  const std::string index = single + ".index.json";
  if (fs.exists(index)) return open_shards(fs, folder, index, files);
  for (const char* name : {"pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    if (fs.exists(join_path(folder, name))) {
      fail(Code::kUnimplemented, join_path(folder, name),
           ": weights in Python's pickle format are not read, since such a file can run code; convert them "
           "to safetensors");
    }
  }
  fail(Code::kNotFound, folder, ": neither model.safetensors nor model.safetensors.index.json is there");
}

}  // namespace

Json read_json_object(FileSystem& fs, const std::string& path, bool required) {
  if (!required && !fs.exists(path)) return Json::object();
  Json json = parse_json(read_text(fs, path, kMaxJson), path);
  if (!json.is_object()) fail(Code::kInvalidArgument, path, ": must hold a JSON object");
  return json;
}

std::string pretty_text(const Json& value) {
  try {
    return value.dump(2, ' ', false, Json::error_handler_t::strict) + "\n";
  } catch (const Json::type_error&) {
    fail(Code::kInvalidArgument, "a string that is to be written as JSON is not UTF-8");
  }
}

void check_plain_name(std::string_view name, std::string_view what) {
  if (name.empty() || name == "." || name == ".." ||
      name.find_first_of(std::string_view("/\\\0", 3)) != name.npos) {
    fail(Code::kDataLoss, what, ": '", name, "' is no plain file name; files must lie in the same folder");
  }
}

void read_hugging_face_tokenizer(FileSystem& fs, const std::string& folder, ModelFiles& out, bool json) {
  const auto path = [&](const char* name) { return join_path(folder, name); };
  if (json && fs.exists(path("tokenizer.json")))
    out.tokenizer_json = read_text(fs, path("tokenizer.json"), kMaxJson);
  out.tokenizer_config =
      normal_tokenizer_config(read_json_object(fs, path("tokenizer_config.json"), false),
                              read_json_object(fs, path("special_tokens_map.json"), false));
  if (json && out.tokenizer_json.empty() && fs.exists(path("tokenizer.model"))) {
    out.tokenizer_json = sentencepiece_tokenizer_json(read_text(fs, path("tokenizer.model"), kMaxJson),
                                                      path("tokenizer.model"), out.tokenizer_config,
                                                      read_json_object(fs, path("added_tokens.json"), false));
  }
  out.chat_template = fs.exists(path("chat_template.jinja"))
                          ? read_text(fs, path("chat_template.jinja"), kMaxJson)
                          : chat_template_of(out.tokenizer_config);
}

ModelFiles open_hugging_face(FileSystem& fs, const std::string& folder, bool tokenizer) {
  ModelFiles out;
  out.path = folder;
  const auto path = [&](const char* name) { return join_path(folder, name); };
  if (!fs.exists(path("config.json"))) {
    fail(Code::kNotFound, path("config.json"),
         " is not there; a model is a Hugging Face folder or a GGUF file");
  }
  out.config = read_json_object(fs, path("config.json"), true);
  std::vector<std::string> files;
  out.weights = open_weights(fs, folder, files);
  out.generation_config = read_json_object(fs, path("generation_config.json"), false);
  read_hugging_face_tokenizer(fs, folder, out, tokenizer);
  out.identity = weights_identity(fs, out.config, out.weights->tensors(), std::move(files));
  out.weights = split_fused(std::move(out.weights), out.config);
  return out;
}

}  // namespace inlaid::formats
