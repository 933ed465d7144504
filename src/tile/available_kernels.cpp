#include "tile/available_kernels.h"

#include "tile/targets.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace simpler::tile {
namespace {

// What the code of each target takes for granted.
#if defined(__x86_64__)
bool has_avx2() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool half_conversions = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  return half_conversions && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd");
}
#elif defined(__aarch64__)
bool has_neon() {
  constexpr unsigned long kAes = 1ul << 3;  // HWCAP_AES: Highway counts it to this target
  return (getauxval(AT_HWCAP) & kAes) != 0;
}
#endif

struct Tables {
  const SimplerTileKernels* best_first[4] = {};
  Tables() {
    const SimplerTileKernels** next = best_first;
    const auto offer = [&](bool runs, const SimplerTileKernels* table) {
      if (runs && table != nullptr) *next++ = table;
    };
#if defined(__x86_64__)
    offer(has_avx512(), compiled_kernels("avx512"));
    offer(has_avx2(), compiled_kernels("avx2"));
#elif defined(__aarch64__)
    offer(has_neon(), compiled_kernels("neon"));
#endif
    offer(true, portable_kernels());
  }
};

}  // namespace

const SimplerTileKernels* const* available_kernels() {
  static const Tables tables;
  return tables.best_first;
}

}  // namespace simpler::tile
