// Where the certificate of an export lies: the file inlaid_certificate.json of a folder, the metadata key inlaid.certificate of a
// GGUF file. What it says is none of this layer's business (train/certificate.h).
//
// The certificate is made of the written files, so it comes last. A folder takes one more file. In a GGUF the metadata come before
// the tensors: room for it is kept there, and the file is copied once with the room filled in.
#ifndef INLAID_SDK_FORMATS_CERTIFICATE_PLACE_H_
#define INLAID_SDK_FORMATS_CERTIFICATE_PLACE_H_

#include <functional>
#include <string>

#include "sdk/base/file_system.h"

namespace inlaid::formats {

inline constexpr const char* kCertificateFile = "inlaid_certificate.json";
inline constexpr const char* kCertificateKey = "inlaid.certificate";
inline constexpr size_t kCertificateBytes = 2048;  // room in a GGUF; the rest is spaces, which JSON allows

// Makes the certificate of what is written under a temporary path; nothing = no certificate. Its errors end the export.
using Certify = std::function<std::string(const std::string& path)>;

// The text of a folder's or file's certificate; kNotFound if there is none.
std::string certificate_text(FileSystem& fs, const std::string& path);

}  // namespace inlaid::formats

#endif  // INLAID_SDK_FORMATS_CERTIFICATE_PLACE_H_
