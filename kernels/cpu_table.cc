// Which tables there are, and which of them this processor can run.
#include "kernels/kernels.h"

namespace inlaid::kernels {

namespace reference {
const KernelTable& table();
}
namespace portable {
const KernelTable& table();
}
#if defined(__x86_64__)
namespace avx2 {
const KernelTable& table();
}
namespace avx512 {
const KernelTable& table();
}
#endif

const KernelTable& reference_kernels() {
  return reference::table();
}

CpuLevel cpu_level() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return CpuLevel::avx512;
  }
  if (avx2) return CpuLevel::avx2;
#endif
  return CpuLevel::portable;
}

const KernelTable& cpu_kernels(CpuLevel level) {
#if defined(__x86_64__)
  if (level == CpuLevel::avx512) return avx512::table();
  if (level == CpuLevel::avx2) return avx2::table();
#else
  static_cast<void>(level);
#endif
  return portable::table();
}

}  // namespace inlaid::kernels
