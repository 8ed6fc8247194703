#include <algorithm>
#include <chrono>
#include <cstring>

#include "capi/include/inlaid.h"
#include "capi/include/inlaid_plugin.h"
#include "capi/src/guard.h"
#include "capi/src/handles.h"
#include "sdk/base/json.h"

namespace inlaid::capi {
namespace {

class HostAllocator final : public SystemAllocator {
 public:
  explicit HostAllocator(const inlaid_allocator &allocator) : host_(allocator) {}
  void *allocate(uint64_t bytes, uint64_t align) override { return host_.alloc(host_.user, bytes, align); }
  void release(void *memory, uint64_t bytes) override { host_.free(host_.user, memory, bytes); }

 private:
  inlaid_allocator host_;
};

// The caller's struct as this library knows it: fields that the caller's version lacks keep their defaults.
template <typename T>
T known_part(const T *caller, const T &defaults, const char *name) {
  T result = defaults;
  if (caller == nullptr) return result;
  if (caller->struct_size < sizeof(uint32_t)) {
    fail(Code::kInvalidArgument, name, ": struct_size is ", caller->struct_size, "; fill the struct from its _INIT macro");
  }
  std::memcpy(&result, caller, std::min<size_t>(caller->struct_size, sizeof(T)));
  return result;
}

struct Settings {
  uint64_t memory_limit = 0;
  Duties duties;
  const kernels::KernelTable *kernels = nullptr;
  static Settings parse(const char *text);
};

const char *level_name(kernels::CpuLevel level) {
  switch (level) {
    case kernels::CpuLevel::portable: return "portable";
    case kernels::CpuLevel::avx2: return "avx2";
    case kernels::CpuLevel::avx512: return "avx512";
  }
  return "portable";
}

Settings Settings::parse(const char *text) {
  Settings settings;
  kernels::CpuLevel level = kernels::cpu_level();
  const std::string what = "settings_json";
  const Json json = text == nullptr ? Json::object() : parse_json(text, what);
  if (!json.is_object()) fail(Code::kInvalidArgument, what, " must be an object");
  for (const auto &[key, value] : json.items()) {
    if (value.is_null()) continue;
    if (key == "memory_limit" || key == "disk_limit") {
      const int64_t limit = int_at(json, key, what);
      if (limit < 1) fail(Code::kInvalidArgument, what, ": ", key, " must be at least 1 byte");
      (key == "memory_limit" ? settings.memory_limit : settings.duties.disk_limit) = static_cast<uint64_t>(limit);
    } else if (key == "wall_time_limit") {
      settings.duties.wall_time_limit = number_at(json, key, what);
      if (!(settings.duties.wall_time_limit > 0)) fail(Code::kInvalidArgument, what, ": ", key, " must be greater than 0 seconds");
    } else if (key == "zero_memory") {
      settings.duties.zero_memory = bool_at(json, key, what);
    } else if (key == "cpu_level") {
      const std::string name = string_at(json, key, what);
      const kernels::CpuLevel best = level;
      bool found = false;
      for (kernels::CpuLevel wanted : {kernels::CpuLevel::portable, kernels::CpuLevel::avx2, kernels::CpuLevel::avx512}) {
        if (name != level_name(wanted)) continue;
        if (wanted > best) fail(Code::kUnavailable, what, ": this processor does not offer ", name);
        level = wanted;
        found = true;
      }
      if (!found) fail(Code::kInvalidArgument, what, ": cpu_level '", name, "' is none of portable, avx2, avx512");
    } else {
      const std::string near = nearest(key, {"memory_limit", "disk_limit", "wall_time_limit", "zero_memory", "cpu_level"});
      fail(Code::kInvalidArgument, what, ": unknown key '", key, "'", near.empty() ? "" : "; did you mean '" + near + "'?");
    }
  }
  settings.kernels = &kernels::cpu_kernels(level);
  return settings;
}

Log make_log(const inlaid_log_sink *sink) {
  Log log;
  if (sink == nullptr) return log;
  const inlaid_log_sink copy = known_part(sink, inlaid_log_sink INLAID_LOG_SINK_INIT, "log_sink");
  if (copy.write == nullptr) fail(Code::kInvalidArgument, "log_sink: write is NULL");
  log.min_level = static_cast<LogLevel>(copy.min_level);
  log.sink = [copy](LogLevel level, const char *component, std::string_view text) {
    copy.write(copy.user, static_cast<int32_t>(level), component, text.data(), text.size());
  };
  return log;
}

}  // namespace

void RuntimeState::check_up() {
  const std::lock_guard<std::mutex> lock(mutex);
  if (down) fail(Code::kFailedPrecondition, "the runtime was shut down");
}

void RuntimeState::add(const std::shared_ptr<train::Run> &run, Runs place) noexcept {
  const std::lock_guard<std::mutex> lock(mutex);
  std::erase_if(runs, [](const std::weak_ptr<train::Run> &other) { return other.expired(); });
  place.front() = run;
  runs.splice(runs.end(), place);
  if (down) run->cancel();
}

void check_one_rank(const inlaid_comm *comm) {
  if (comm != nullptr) fail(Code::kUnimplemented, "this version trains on one rank; pass NULL as communicator");
}

}  // namespace inlaid::capi

using namespace inlaid;
using namespace inlaid::capi;

uint32_t inlaid_abi_version(void) INLAID_NOEXCEPT { return INLAID_ABI_VERSION; }

const char *inlaid_version_string(void) INLAID_NOEXCEPT { return "Inlaid " INLAID_VERSION; }

int32_t inlaid_has_feature(const char *name) INLAID_NOEXCEPT {
  if (name == nullptr) return 0;
  const std::string_view feature = name;
  for (std::string_view always : {"lora", "rslora", "gguf", "safetensors", "peft", "chat_template"}) {
    if (feature == always) return 1;
  }
  if (feature == "avx2") return kernels::cpu_level() >= kernels::CpuLevel::avx2;
  if (feature == "avx512") return kernels::cpu_level() >= kernels::CpuLevel::avx512;
  return 0;
}

const void *inlaid_buffer_data(const inlaid_buffer *b) INLAID_NOEXCEPT { return b == nullptr ? nullptr : b->bytes.c_str(); }
uint64_t inlaid_buffer_size(const inlaid_buffer *b) INLAID_NOEXCEPT { return b == nullptr ? 0 : b->bytes.size(); }
void inlaid_buffer_release(inlaid_buffer *b) INLAID_NOEXCEPT { delete b; }

inlaid_error *inlaid_runtime_create(const inlaid_runtime_options *options, inlaid_runtime **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    const inlaid_runtime_options known = known_part(options, inlaid_runtime_options INLAID_RUNTIME_OPTIONS_INIT, "options");
    if (known.next != nullptr) fail(Code::kInvalidArgument, "options: next must be NULL");
    if (known.cpu_threads < 0 || known.cpu_threads > 4096) {
      fail(Code::kInvalidArgument, "options: cpu_threads = ", known.cpu_threads, " must be between 0 (all) and 4096");
    }
    const Settings settings = Settings::parse(known.settings_json);
    auto state = std::make_shared<RuntimeState>();
    state->settings = text_or(known.settings_json, "{}");
    std::shared_ptr<SystemAllocator> allocator;
    if (known.host_allocator != nullptr) {
      const inlaid_allocator host = known_part(known.host_allocator, inlaid_allocator INLAID_ALLOCATOR_INIT, "host_allocator");
      if (host.alloc == nullptr || host.free == nullptr) {
        fail(Code::kInvalidArgument, "host_allocator: alloc and free must not be NULL");
      }
      allocator = std::make_shared<HostAllocator>(host);
    }
    state->runtime = std::make_shared<Runtime>(known.cpu_threads, settings.memory_limit,
                                               std::move(allocator), posix_file_system(), make_log(known.log_sink),
                                               *settings.kernels, settings.duties);
    *out = new inlaid_runtime(std::move(state));
  });
}

inlaid_error *inlaid_runtime_describe(inlaid_runtime *rt, inlaid_buffer **out_json) INLAID_NOEXCEPT {
  if (out_json != nullptr) *out_json = nullptr;
  return guard([&] {
    required(out_json, "out_json");
    const Runtime &runtime = *checked(rt, "runtime").value->runtime;
    const MemoryAccount::Usage usage = runtime.memory->usage();
    Json json;
    json["version"] = INLAID_VERSION;
    json["abi"] = std::to_string(INLAID_ABI_MAJOR) + "." + std::to_string(INLAID_ABI_MINOR);
    json["kernels"] = runtime.kernels.name;
    json["cpu_threads"] = runtime.pool.threads();
    json["memory_limit"] = runtime.memory->limit();
    json["disk_limit"] = runtime.files.limit();
    json["disk_used"] = runtime.files.used();
    json["wall_time_limit"] = runtime.duties.wall_time_limit;
    json["zero_memory"] = runtime.duties.zero_memory;
    json["settings"] = parse_json(rt->value->settings, "settings_json");
    for (int i = 0; i < kCategories; ++i) {
      const char *name = category_name(static_cast<Category>(i));
      json["memory"][name]["current"] = usage.current[static_cast<size_t>(i)];
      json["memory"][name]["peak"] = usage.peak[static_cast<size_t>(i)];
    }
    json["memory"]["total"]["current"] = usage.current_total;
    json["memory"]["total"]["peak"] = usage.peak_total;
    *out_json = buffer(to_text(json));
  });
}

inlaid_error *inlaid_runtime_shutdown(inlaid_runtime *rt, int64_t timeout_ms) INLAID_NOEXCEPT {
  return guard([&] {
    RuntimeState &state = *checked(rt, "runtime").value;
    std::vector<std::shared_ptr<train::Run>> going;
    {
      const std::lock_guard<std::mutex> lock(state.mutex);
      state.down = true;
      for (const std::weak_ptr<train::Run> &weak : state.runs) {
        if (std::shared_ptr<train::Run> run = weak.lock()) going.push_back(std::move(run));
      }
    }
    for (const auto &run : going) run->cancel();
    const auto begin = std::chrono::steady_clock::now();
    for (const auto &run : going) {
      int64_t left = -1;
      if (timeout_ms >= 0) {
        const auto passed = std::chrono::steady_clock::now() - begin;
        left = std::max<int64_t>(
            0, timeout_ms - std::chrono::duration_cast<std::chrono::milliseconds>(passed).count());
      }
      bool over = true;
      try {
        over = run->join(left);
      } catch (const Error &) {
        // How the run ended is the business of whoever joins it.
      }
      if (!over) fail(Code::kDeadlineExceeded, "a run is still ending; call shutdown again");
    }
  });
}

void inlaid_runtime_release(inlaid_runtime *rt) INLAID_NOEXCEPT { drop(rt); }

inlaid_error *inlaid_cancel_create(inlaid_cancel **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    *out = new inlaid_cancel;
  });
}
void inlaid_cancel_trigger(inlaid_cancel *c) INLAID_NOEXCEPT {
  if (c != nullptr) c->flag.store(true, std::memory_order_relaxed);
}
void inlaid_cancel_release(inlaid_cancel *c) INLAID_NOEXCEPT { delete c; }
