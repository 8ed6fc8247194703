#include "tests/fuzz/check.h"

#include <cstdio>
#include <cstdlib>
#include <span>

#include "sdk/base/json.h"
#include "sdk/base/utf8.h"

namespace inlaid::fuzz {
namespace {

constexpr std::string_view kCut = "\n--8<--\n";
constexpr size_t kLongestMessage = 8192;

}  // namespace

void fault(const std::string& what) {
  std::fprintf(stderr, "fault: %s\n", what.c_str());
  std::abort();
}

void check_error(const Error& error) {
  const std::string& message = error.message();
  if (error.code() == Code::kOk || error.code() == Code::kInternal || error.code() == Code::kUnknown) {
    fault(std::string("input from outside gives ") + code_name(error.code()) + ": " + message);
  }
  if (message.empty()) fault(std::string(code_name(error.code())) + " without a message");
  if (message.size() > kLongestMessage) fault("a message of " + std::to_string(message.size()) + " bytes");
  if (first_invalid_utf8(message) != std::string::npos) fault("a message that is not UTF-8: " + message);
  for (const char c : message) {
    if (static_cast<unsigned char>(c) < 0x20) fault("a control character in a message: " + message);
  }
  try {
    if (!parse_json(error.details(), "details").is_object()) fault("details that are no object: " + error.details());
  } catch (const Error&) {
    fault("details that are no JSON: " + error.details());
  }
}

std::vector<std::string> parts_of(const uint8_t* data, size_t size, size_t count) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> parts;
  while (parts.size() + 1 < count) {
    const size_t cut = rest.find(kCut);
    parts.emplace_back(rest.substr(0, cut));
    rest.remove_prefix(cut == rest.npos ? rest.size() : cut + kCut.size());
  }
  parts.emplace_back(rest);
  return parts;
}

void put_file(FileSystem& fs, const std::string& path, std::string_view bytes) {
  fs.make_folders(parent_path(path));
  const auto file = fs.create(path);
  file->write(std::as_bytes(std::span(bytes.data(), bytes.size())));
  file->close();
}

}  // namespace inlaid::fuzz
