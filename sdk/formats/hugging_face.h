// A Hugging Face model folder: config.json; weights in model.safetensors or in shards listed by
// model.safetensors.index.json {"metadata": {...}, "weight_map": {tensor: file}}; and the tokenizer's files.
//
// The index comes from outside like everything else: shard names must be plain file names (nothing can point
// out of the folder), every tensor must be in the shard that the index names, and no tensor in two shards.
// Tensors that a shard holds beyond the index are listed like the others, so that whoever loads the model
// sees and can refuse them.
//
// Tests: hugging_face_test.cc, golden_test.cc.
#ifndef INLAID_SDK_FORMATS_HUGGING_FACE_H_
#define INLAID_SDK_FORMATS_HUGGING_FACE_H_

#include <string>
#include <string_view>

#include "sdk/formats/weight_source.h"

namespace inlaid::formats {

ModelFiles open_hugging_face(FileSystem& fs, const std::string& folder, bool tokenizer = true);

// The tokenizer's part of a folder: tokenizer_json (of tokenizer.json, else made of tokenizer.model),
// tokenizer_config and chat_template. Without `json` the first is left alone.
void read_hugging_face_tokenizer(FileSystem& fs, const std::string& folder, ModelFiles& out,
                                 bool json = true);

// A JSON file that must hold an object; {} when it is missing and `required` is false.
Json read_json_object(FileSystem& fs, const std::string& path, bool required);
// JSON for people: two spaces of indentation and a final newline.
std::string pretty_text(const Json& value);
// Throws kDataLoss unless `name` is a file name without any path.
void check_plain_name(std::string_view name, std::string_view what);

// Writes one safetensors file, value by value.
void write_safetensors(FileSystem& fs, const std::string& path, std::span<const ExportTensor> tensors);

}  // namespace inlaid::formats

#endif  // INLAID_SDK_FORMATS_HUGGING_FACE_H_
