#include "sdk/formats/certificate_place.h"

#include "sdk/base/error.h"
#include "sdk/formats/gguf_file.h"

namespace inlaid::formats {

std::string certificate_text(FileSystem& fs, const std::string& path) {
  if (!fs.exists(path)) fail(Code::kNotFound, path, ": there is no such folder or file");
  if (fs.is_folder(path)) {
    const std::string file = join_path(path, kCertificateFile);
    if (!fs.exists(file)) fail(Code::kNotFound, path, " has no certificate: there is no ", kCertificateFile);
    return read_text(fs, file, uint64_t{1} << 20);
  }
  const GgufFile file(fs, path);
  const std::optional<std::string> text = file.optional_text(kCertificateKey);
  if (!text) fail(Code::kNotFound, path, " has no certificate: there is no key ", kCertificateKey);
  return *text;
}

}  // namespace inlaid::formats
