#include "sdk/checkpoint/render.h"

#include "sdk/base/clock.h"
#include "sdk/base/error.h"
#include "sdk/checkpoint/format.h"

namespace inlaid::checkpoint {
namespace {

// A JSON text as JSON; as text when it is none.
Json embedded(const std::string& text) {
  if (text.empty()) return nullptr;
  try {
    return parse_json(text, "text");
  } catch (const Error&) {
    return text;
  }
}

Json utc(int64_t unix_ms) {
  const std::string text = unix_ms < 0 ? "" : utc_text(unix_ms / 1000);
  return text.empty() ? Json(unix_ms) : Json(text + "Z");
}

Json mesh_json(const v1::Mesh& mesh) {
  return Json{{"world", mesh.world()},     {"pipeline", mesh.pipeline()}, {"data", mesh.data()},
              {"context", mesh.context()}, {"expert", mesh.expert()},     {"tensor", mesh.tensor()}};
}

Json writers_json(const v1::Manifest& manifest) {
  Json list = Json::array();
  for (const v1::Writer& writer : manifest.writers()) {
    list.push_back({{"rank", writer.rank()},
                    {"index_file", writer.index_file()},
                    {"index_bytes", writer.index_bytes()},
                    {"index_sha256", writer.index_sha256()},
                    {"records", writer.records()}});
  }
  return list;
}

Json adapters_json(const v1::Manifest& manifest) {
  Json list = Json::array();
  for (const v1::Adapter& adapter : manifest.adapters()) {
    list.push_back({{"name", adapter.name()}, {"config", embedded(adapter.config_json())}});
  }
  return list;
}

Json files_json(const Contents& contents) {
  Json list = Json::array();
  for (const v1::ExtraFile& file : contents.manifest.extra_files()) {
    list.push_back({{"name", file.name()}, {"bytes", file.bytes()}, {"sha256", file.sha256()}});
  }
  return list;
}

Json shards_json(const Contents& contents) {
  Json list = Json::array();
  for (const ShardInfo& shard : contents.shards) list.push_back({{"file", shard.file}, {"bytes", shard.bytes}});
  return list;
}

Json tensors_json(const Contents& contents) {
  Json list = Json::array();
  for (const Entry& entry : contents.entries) {
    Json tensor = Json::object();
    tensor["name"] = entry.record.name;
    tensor["role"] = role_name(entry.record.role);
    tensor["dtype"] = dtype_name(entry.record.dtype);
    tensor["shape"] = entry.record.shape;
    tensor["file"] = contents.shards[entry.shard].file;
    tensor["key"] = entry.key;
    tensor["offset"] = entry.offset;
    tensor["bytes"] = entry.bytes;
    tensor["crc32c"] = entry.crc;
    list.push_back(std::move(tensor));
  }
  return list;
}

}  // namespace

std::string render(const Contents& contents) {
  const v1::Manifest& manifest = contents.manifest;
  Json json = Json::object();
  json["format_version"] = manifest.format_version();
  json["min_reader_version"] = manifest.min_reader_version();
  json["producer"] = manifest.producer();
  json["created"] = utc(manifest.created_unix_ms());
  json["step"] = manifest.step();
  json["cursor"] = {{"epoch", manifest.cursor().epoch()}, {"index", manifest.cursor().index()}};
  // Text of an unknown codec is not for JSON.
  if (manifest.trainer_state().codec() == "json") json["trainer_state"] = embedded(manifest.trainer_state().data());
  json["mesh"] = mesh_json(manifest.mesh());
  json["writers"] = writers_json(manifest);
  json["config"] = embedded(manifest.config_json());
  json["model_config"] = embedded(manifest.model_config_json());
  if (manifest.has_base()) {
    json["base"] = {{"path", manifest.base().path()}, {"identity", manifest.base().identity()}};
  }
  json["adapters"] = adapters_json(manifest);
  json["identities"] = {{"dataset", manifest.identities().dataset()},
                        {"tokenizer_sha256", manifest.identities().tokenizer_sha256()},
                        {"template_sha256", manifest.identities().template_sha256()}};
  json["extra_files"] = files_json(contents);
  json["metadata"] = Json::object();
  for (const v1::KeyValue& pair : manifest.metadata()) json["metadata"][pair.key()] = pair.value();
  json["shards"] = shards_json(contents);
  json["tensors"] = tensors_json(contents);
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace inlaid::checkpoint
