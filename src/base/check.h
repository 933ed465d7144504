// SIMPLER_CHECK: an invariant that, when broken, ends the process with a sentence and its values.
// Stays on in release builds; the formatting lives in a cold function, so the test costs one predictable branch.
// For what users can cause there are errors; this is for what only a bug of ours can cause. C++17, no libraries.
#pragma once
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace simpler {

[[noreturn, gnu::cold, gnu::noinline, gnu::format(printf, 3, 4)]] inline void check_failed(const char* file, int line,
                                                                                           const char* pattern, ...) {
  std::fprintf(stderr, "simpler: internal error at %s:%d: ", file, line);
  va_list values;
  va_start(values, pattern);
  std::vfprintf(stderr, pattern, values);
  va_end(values);
  std::fputc('\n', stderr);
  std::abort();
}

}  // namespace simpler

#define SIMPLER_CHECK(condition, ...) \
  ((condition) ? static_cast<void>(0) : ::simpler::check_failed(__FILE__, __LINE__, __VA_ARGS__))
