// Speed of the matrix product at the shapes of SmolLM2-135M training (1024 tokens), LoRA and decoding, in
// GF/s and in percent of the multiply-add peak that this program measures first; decoding also in GB/s of
// weights read.
//   gemm_bench [--level avx512|avx2|portable] [--threads 1,2] [--repeat 10] [--filter text] [--rival library]
// The rival is opened with dlopen and called through cblas_sgemm, on one thread unless it is told otherwise.
// Times are the best of the repeats: other work on the machine only adds. One thread is measured in its own
// processor time, several in wall time, which is meaningful on an idle machine only.
#include <dlfcn.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/test_threads.h"
#include "kernels/storage/storage.h"

namespace inlaid::kernels {
namespace {

struct Shape {
  const char* name;
  int64_t m, n, k;
  bool transpose_a, transpose_b, accumulate;
  DType type = DType::f32;
};

constexpr Shape kShapes[] = {
    {"forward q,o      NT", 1024, 576, 576, false, true, false},
    {"forward k,v      NT", 1024, 192, 576, false, true, false},
    {"forward gate,up  NT", 1024, 1536, 576, false, true, false},
    {"forward down     NT", 1024, 576, 1536, false, true, false},
    {"forward head     NT", 1024, 49152, 576, false, true, false},
    {"input q,o        NN", 1024, 576, 576, false, false, false},
    {"input k,v        NN", 1024, 576, 192, false, false, false},
    {"input gate,up    NN", 1024, 576, 1536, false, false, false},
    {"input down       NN", 1024, 1536, 576, false, false, false},
    {"input head       NN", 1024, 576, 49152, false, false, false},
    {"weight q,o       TN", 576, 576, 1024, true, false, true},
    {"weight k,v       TN", 192, 576, 1024, true, false, true},
    {"weight gate,up   TN", 1536, 576, 1024, true, false, true},
    {"weight down      TN", 576, 1536, 1024, true, false, true},
    {"weight head      TN", 49152, 576, 1024, true, false, true},
    {"forward q4_1     NT", 1024, 576, 576, false, true, false, DType::q4_1},
    {"forward bf16     NT", 1024, 1536, 576, false, true, false, DType::bf16},
    {"input q4_1       NN", 1024, 576, 1536, false, false, false, DType::q4_1},
    {"width 2048       NT", 1024, 2048, 2048, false, true, false},
    {"width 4096       NN", 512, 4096, 4096, false, false, false},
    {"LoRA down r16    NT", 1024, 16, 576, false, true, false},
    {"LoRA up r16      NT", 1024, 576, 16, false, true, true},
    {"LoRA weight A    TN", 16, 576, 1024, true, false, true},
    {"LoRA weight B    TN", 576, 16, 1024, true, false, true},
    {"decode 1 head    NT", 1, 49152, 576, false, true, false},
    {"decode 1 up      NT", 1, 1536, 576, false, true, false},
    {"decode 4 head    NT", 4, 49152, 576, false, true, false},
    {"decode 1 bf16    NT", 1, 49152, 576, false, true, false, DType::bf16},
    {"decode 1 q4_1    NT", 1, 49152, 576, false, true, false, DType::q4_1},
};

double seconds(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}
double now() {
  return seconds(CLOCK_THREAD_CPUTIME_ID);
}

// Twelve independent chains of multiply-adds, enough for a latency of four and two a cycle.
#define INLAID_CHAINS(fma) \
  fma(0) fma(1) fma(2) fma(3) fma(4) fma(5) fma(6) fma(7) fma(8) fma(9) fma(10) fma(11)
double chains512(int64_t steps) {
  const double begin = now();
#define INLAID_FMA(i) "vfmadd231ps %%zmm30, %%zmm31, %%zmm" #i "\n"
  asm volatile("1:\n" INLAID_CHAINS(INLAID_FMA) "dec %0\n jnz 1b\n" : "+r"(steps)::"cc");
#undef INLAID_FMA
  return now() - begin;
}
double chains256(int64_t steps) {
  const double begin = now();
#define INLAID_FMA(i) "vfmadd231ps %%ymm14, %%ymm15, %%ymm" #i "\n"
  asm volatile("1:\n" INLAID_CHAINS(INLAID_FMA) "dec %0\n jnz 1b\n" : "+r"(steps)::"cc");
#undef INLAID_FMA
  return now() - begin;
}

// GF/s of one core.
double peak(const std::string& level) {
  const bool wide = level == "avx512";
  double best = 1e9;
  for (int i = 0; i < 20; ++i) best = std::min(best, wide ? chains512(300000) : chains256(300000));
  return 300000.0 * 12 * (wide ? 32 : 16) / best * 1e-9;
}

// Memory as the engine's arenas have it: whole large pages where the system gives them.
struct Aligned {
  explicit Aligned(size_t bytes) {
    constexpr size_t kPage = 2 << 20;
    const size_t size = (bytes + kPage) / kPage * kPage;
    data = std::aligned_alloc(kPage, size);
    madvise(data, size, MADV_HUGEPAGE);
    std::memset(data, 0, size);
  }
  ~Aligned() { std::free(data); }
  Aligned(const Aligned&) = delete;
  Aligned& operator=(const Aligned&) = delete;
  void* data;
};

void fill(float* data, int64_t n, uint32_t seed) {
  for (int64_t i = 0; i < n; ++i) {
    seed = seed * 1664525u + 1013904223u;
    data[i] = static_cast<float>(seed >> 8) * 0x1p-23f - 1.0f;
  }
}

struct Operands {
  explicit Operands(const Shape& s)
      : a(static_cast<size_t>(s.m * s.k) * 4),
        b(static_cast<size_t>(dtype_bytes(s.type, s.n * s.k))),
        c(static_cast<size_t>(s.m * s.n) * 4) {
    fill(static_cast<float*>(a.data), s.m * s.k, 1);
    std::vector<float> values(static_cast<size_t>(s.n * s.k));
    fill(values.data(), s.n * s.k, 2);
    from_f32(s.type, values.data(), s.n * s.k, b.data);
    args.a = view2(a.data, DType::f32, s.transpose_a ? s.k : s.m, s.transpose_a ? s.m : s.k);
    args.b = view2(b.data, s.type, s.transpose_b ? s.n : s.k, s.transpose_b ? s.k : s.n);
    args.c = view2(c.data, DType::f32, s.m, s.n);
    args.transpose_a = s.transpose_a;
    args.transpose_b = s.transpose_b;
    args.accumulate = s.accumulate;
  }
  Aligned a, b, c;
  GemmArgs args;
};

template <typename Fn>
double best_of(int repeat, double flops, int32_t threads, Fn&& fn) {
  const clockid_t clock = threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  double best = 1e30;
  fn();
  const int times = flops > 2e10 ? std::max(repeat / 4, 2) : repeat;
  for (int i = 0; i < times; ++i) {
    const double begin = seconds(clock);
    fn();
    best = std::min(best, seconds(clock) - begin);
  }
  return best;
}

struct Level {
  size_t (*workspace)(const GemmArgs&, int32_t);
  void (*gemm)(const Context&, const GemmArgs&);
};

using Sgemm = void (*)(int order, int ta, int tb, int m, int n, int k, float alpha, const float* a, int lda,
                       const float* b, int ldb, float beta, float* c, int ldc);

void call_rival(Sgemm sgemm, const GemmArgs& g, const Shape& s) {
  sgemm(101, g.transpose_a ? 112 : 111, g.transpose_b ? 112 : 111, static_cast<int>(s.m),
        static_cast<int>(s.n), static_cast<int>(s.k), 1.0f, g.a.as<float>(), static_cast<int>(g.a.stride[0]),
        g.b.as<float>(), static_cast<int>(g.b.stride[0]), g.accumulate ? 1.0f : 0.0f, g.c.as<float>(),
        static_cast<int>(g.c.stride[0]));
}

void measure(const Shape& s, const Level& level, const std::vector<TestThreads*>& pools, int repeat,
             double peak_core, Sgemm rival) {
  Operands o(s);
  const double flops = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  std::printf("%s %5lld x %5lld x %5lld ", s.name, static_cast<long long>(s.m), static_cast<long long>(s.n),
              static_cast<long long>(s.k));
  for (TestThreads* pool : pools) {
    const int32_t threads = pool->executor().threads;
    const size_t bytes = level.workspace(o.args, threads);
    Aligned workspace(bytes);
    const Context context{&pool->executor(), static_cast<std::byte*>(workspace.data), bytes};
    const double t = best_of(repeat, flops, threads, [&] { level.gemm(context, o.args); });
    std::printf(" | %dT %6.1f GF/s %5.1f %%", threads, flops / t * 1e-9,
                flops / t * 1e-7 / (peak_core * threads));
    if (s.m <= 4) std::printf(" %5.1f GB/s", static_cast<double>(dtype_bytes(s.type, s.n * s.k)) / t * 1e-9);
  }
  if (rival != nullptr && s.type == DType::f32) {
    const double t = best_of(repeat, flops, 1, [&] { call_rival(rival, o.args, s); });
    std::printf(" | rival %6.1f GF/s", flops / t * 1e-9);
  }
  std::printf("\n");
}

int main_of(int argc, char** argv) {
  std::string level_name = "avx512", filter, threads = "1,2";
  Sgemm rival = nullptr;
  int repeat = 10;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--level") level_name = argv[i + 1];
    if (option == "--filter") filter = argv[i + 1];
    if (option == "--threads") threads = argv[i + 1];
    if (option == "--repeat") repeat = std::max(std::atoi(argv[i + 1]), 1);
    if (option == "--rival") {
      void* library = dlopen(argv[i + 1], RTLD_NOW | RTLD_LOCAL);
      rival = library ? reinterpret_cast<Sgemm>(dlsym(library, "cblas_sgemm")) : nullptr;
      if (rival == nullptr) std::fprintf(stderr, "no cblas_sgemm in %s\n", argv[i + 1]);
    }
  }
  const Level level = level_name == "portable" ? Level{portable::gemm_workspace, portable::gemm}
                      : level_name == "avx2"   ? Level{avx2::gemm_workspace, avx2::gemm}
                                               : Level{avx512::gemm_workspace, avx512::gemm};
  std::vector<TestThreads*> pools;
  for (size_t at = 0; at < threads.size(); at = std::min(threads.find(',', at), threads.size() - 1) + 1) {
    pools.push_back(new TestThreads(std::max(std::atoi(threads.c_str() + at), 1)));
  }
  const double peak_core = peak(level_name);
  std::printf("%s, peak %.1f GF/s a core\n", level_name.c_str(), peak_core);
  for (const Shape& s : kShapes) {
    if (std::strstr(s.name, filter.c_str())) measure(s, level, pools, repeat, peak_core, rival);
  }
  for (TestThreads* pool : pools) delete pool;
  return 0;
}

}  // namespace
}  // namespace inlaid::kernels

int main(int argc, char** argv) {
  return inlaid::kernels::main_of(argc, argv);
}
