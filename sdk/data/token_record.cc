#include "sdk/data/token_record.h"

#include <bit>      // for endian
#include <cstring>  // for memcpy

#include "sdk/base/error.h"
#include "sdk/base/hash.h"

namespace inlaid::data {
namespace {

static_assert(std::endian::native == std::endian::little, "the file holds values as they lie in memory");

void put(const void* data, size_t bytes, std::vector<std::byte>* out) {
  const auto* begin = static_cast<const std::byte*>(data);
  out->insert(out->end(), begin, begin + bytes);
}

}  // namespace

void put_record(int64_t row, std::span<const int32_t> tokens, std::span<const int32_t> targets, std::vector<std::byte>* out) {
  INLAID_CHECK(tokens.size() == targets.size());
  const size_t begin = out->size();
  const uint64_t length = tokens.size();
  put(&row, sizeof row, out);
  put(&length, sizeof length, out);
  put(tokens.data(), tokens.size_bytes(), out);
  put(targets.data(), targets.size_bytes(), out);
  const uint32_t crc = crc32c(0, std::span(*out).subspan(begin));
  put(&crc, sizeof crc, out);
}

bool take_record(std::span<const std::byte> record, Sample* out) {
  const std::span<const std::byte> covered = record.first(record.size() - sizeof(uint32_t));
  uint32_t crc;
  std::memcpy(&crc, covered.data() + covered.size(), sizeof crc);
  if (crc != crc32c(0, covered)) return false;
  uint64_t length;
  std::memcpy(&out->row, covered.data(), sizeof out->row);
  std::memcpy(&length, covered.data() + sizeof out->row, sizeof length);
  if (record.size() != record_bytes(length)) return false;
  out->tokens.resize(length);
  out->targets.resize(length);
  const std::byte* ids = covered.data() + kRecordHeadBytes;
  std::memcpy(out->tokens.data(), ids, length * sizeof(int32_t));
  std::memcpy(out->targets.data(), ids + length * sizeof(int32_t), length * sizeof(int32_t));
  return true;
}

Sample read_record(const ReadableFile& file, uint64_t offset, int64_t row, int64_t length) {
  std::vector<std::byte> record(record_bytes(static_cast<uint64_t>(length)));
  file.read_at(offset, record);
  Sample sample;
  if (!take_record(record, &sample) || sample.row != row) {
    fail(Code::kDataLoss, "token cache ", file.path(), ": the sample of row ", row,
         " was changed since the data set was opened; remove the file, the next run makes it anew");
  }
  return sample;
}

}  // namespace inlaid::data
