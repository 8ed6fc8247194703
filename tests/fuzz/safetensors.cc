// A safetensors file: read, written anew, and read again with the same tensors.
#include "sdk/formats/safetensors.h"

#include <map>

#include "sdk/base/testing/memory_file_system.h"
#include "tests/fuzz/check.h"

namespace {

using namespace inlaid;
using Bytes = std::vector<std::byte>;

Bytes bytes_of(const formats::WeightSource& source, size_t index) {
  const formats::StoredTensor& tensor = source.tensors()[index];
  Bytes out(static_cast<size_t>(byte_count(tensor.dtype, tensor.shape)));
  source.read(index, out);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  testing::MemoryFileSystem fs;
  fuzz::put_file(fs, "in.safetensors", {reinterpret_cast<const char*>(data), size});
  std::unique_ptr<formats::SafetensorsFile> file;
  if (!fuzz::accepts([&] { file = std::make_unique<formats::SafetensorsFile>(fs, "in.safetensors"); })) return 0;
  // Everything that can be read can be written.
  formats::SafetensorsWriter writer(fs, "out.safetensors", file->tensors(), file->metadata());
  for (const size_t index : writer.order()) writer.write(bytes_of(*file, index));
  writer.finish();
  const formats::SafetensorsFile again(fs, "out.safetensors");
  FUZZ_REQUIRE(again.tensors().size() == file->tensors().size() && again.metadata() == file->metadata());
  for (size_t i = 0; i < again.tensors().size(); ++i) {
    const formats::StoredTensor &a = file->tensors()[i], &b = again.tensors()[i];
    FUZZ_REQUIRE(a.name == b.name && a.dtype == b.dtype && a.shape == b.shape);
    FUZZ_REQUIRE(bytes_of(*file, i) == bytes_of(again, i));
  }
  return 0;
}
