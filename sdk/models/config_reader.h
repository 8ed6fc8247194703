// Reading of single keys of a config.json; a key with the value null counts as missing.
#ifndef INLAID_SDK_MODELS_CONFIG_READER_H_
#define INLAID_SDK_MODELS_CONFIG_READER_H_

#include <cstdint>
#include <string_view>

#include "sdk/base/error.h"
#include "sdk/base/json.h"

namespace inlaid::models {

inline const Json* find(const Json& config, const char* key) {
  const auto found = config.find(key);
  return found == config.end() || found->is_null() ? nullptr : &*found;
}

// A size from 1 to 2^31; `otherwise` where the key is missing, which is an error if that is negative.
inline int64_t size_at(const Json& config, const char* key, std::string_view what, int64_t otherwise = -1) {
  if (find(config, key) == nullptr) {
    if (otherwise >= 0) return otherwise;
    fail(Code::kInvalidArgument, what, ": key '", key, "' is missing");
  }
  const int64_t value = int_at(config, key, what);
  if (value < 1 || value > (int64_t{1} << 31)) {
    fail(Code::kInvalidArgument, what, ": ", key, " = ", value, " must be between 1 and 2^31");
  }
  return value;
}

inline bool flag_at(const Json& config, const char* key, std::string_view what, bool otherwise) {
  return find(config, key) == nullptr ? otherwise : bool_at(config, key, what);
}

// Factors, bases and epsilons: with these bounds no product or power of them leaves the range of a double.
constexpr double kLeast = 1e-15, kMost = 1e15;
inline bool is_sensible(double value) { return value >= kLeast && value <= kMost; }

inline double positive_at(const Json& config, const char* key, std::string_view what, double otherwise) {
  if (find(config, key) == nullptr) return otherwise;
  const double value = number_at(config, key, what);
  if (!is_sensible(value)) {
    fail(Code::kInvalidArgument, what, ": ", key, " must be positive, from ", kLeast, " to ", kMost, ", not ", value);
  }
  return value;
}

[[noreturn]] inline void refuse(std::string_view what, std::string_view key, const Json& value, std::string_view right) {
  fail(Code::kUnimplemented, what, ": ", key, " = ", to_text(value), " changes the computation and is not supported; ",
       right);
}

}  // namespace inlaid::models

#endif  // INLAID_SDK_MODELS_CONFIG_READER_H_
