// Log of one runtime: records go to the host's sink or nowhere. Nothing is ever written to stdout or stderr.
#ifndef INLAID_SDK_BASE_LOG_H_
#define INLAID_SDK_BASE_LOG_H_

#include <functional>
#include <string_view>

namespace inlaid {

enum class LogLevel : int { kTrace = 0, kDebug = 1, kInfo = 2, kWarning = 3, kError = 4 };

struct Log {
  using Sink = std::function<void(LogLevel level, const char* component, std::string_view text)>;
  LogLevel min_level = LogLevel::kInfo;
  Sink sink;  // empty = silent; must be callable from any thread

  bool enabled(LogLevel level) const { return sink && level >= min_level; }
  void write(LogLevel level, const char* component, std::string_view text) const {
    if (enabled(level)) sink(level, component, text);
  }
};

}  // namespace inlaid

#endif  // INLAID_SDK_BASE_LOG_H_
