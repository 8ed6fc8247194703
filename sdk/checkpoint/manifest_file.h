// manifest.pb as bytes: a protobuf message followed by its own checksum.
//
// The last five bytes of the file are the field crc32c (tag 7d, then CRC-32C of everything before, low byte first). To
// protobuf it is one more field, so any reader of the schema reads the file; to us it finds each flipped bit and each
// truncation, which the message format alone does not: a cut between two fields is a valid message.
//
// Fields that a newer version has added are kept by parse() and written again by seal() (protobuf lite carries unknown
// fields). Tests: manifest_file_test.cc.
#ifndef INLAID_SDK_CHECKPOINT_MANIFEST_FILE_H_
#define INLAID_SDK_CHECKPOINT_MANIFEST_FILE_H_

#include <string>
#include <string_view>

#include "inlaid/checkpoint/v1/index.pb.h"
#include "inlaid/checkpoint/v1/manifest.pb.h"

namespace inlaid::checkpoint {

// The file's bytes: `manifest` without its checksum, then the checksum. kInvalidArgument for text that is not UTF-8 and for
// what would exceed kMaxManifestBytes.
std::string seal_manifest(v1::Manifest manifest);

// Parses and checks in this order: size, message, min_reader_version (kFailedPrecondition), checksum, then what the message
// says of itself: versions, counts, plain and distinct file names, digests. Everything else is kDataLoss naming `path`.
v1::Manifest parse_manifest(std::string_view bytes, const std::string& path);

// A bounded parse of a message of an index file; kDataLoss naming `path`.
v1::Index parse_index(std::string_view bytes, const std::string& path);

}  // namespace inlaid::checkpoint

#endif  // INLAID_SDK_CHECKPOINT_MANIFEST_FILE_H_
