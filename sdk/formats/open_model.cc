#include "sdk/base/error.h"
#include "sdk/formats/gguf_source.h"
#include "sdk/formats/gguf_tokenizer.h"
#include "sdk/formats/hugging_face.h"
#include "sdk/formats/identity.h"

namespace inlaid::formats {
namespace {

ModelFiles open_gguf(FileSystem& fs, const std::string& path, bool tokenizer) {
  auto file = std::make_unique<GgufFile>(fs, path);
  ModelFiles out;
  out.path = path;
  out.config = gguf_config(*file);
  out.generation_config = Json::object();
  out.tokenizer_config = Json::object();
  if (has_gguf_tokenizer(*file)) {
    if (tokenizer) out.tokenizer_json = gguf_tokenizer_json(*file);
    out.tokenizer_config = gguf_tokenizer_config(*file);
    out.generation_config = gguf_generation_config(*file);
  }
  out.chat_template = file->optional_text("tokenizer.chat_template").value_or("");
  const LlamaGeometry geometry = parse_llama_geometry(out.config, path);
  out.weights = std::make_unique<GgufSource>(std::move(file), geometry);
  out.identity = weights_identity(fs, out.config, out.weights->tensors(), {path});
  return out;
}

}  // namespace

ModelFiles open_model(FileSystem& fs, const std::string& path, bool tokenizer) {
  if (!fs.exists(path)) fail(Code::kNotFound, path, ": there is no such folder or file");
  return fs.is_folder(path) ? open_hugging_face(fs, path, tokenizer) : open_gguf(fs, path, tokenizer);
}

}  // namespace inlaid::formats
