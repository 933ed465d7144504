// always_assert and debug_assert, for orchestrations and the runtime. A failed assertion throws AssertionError, which the
// runtime turns into a failed run; inside a kernel there is nobody to catch it, so the kernel traps.
// debug_assert vanishes under NDEBUG.
#pragma once

#if defined(__DAV_VEC__) || defined(__DAV_CUBE__)
[[noreturn]] inline void assert_impl(const char*, const char*, int) { __builtin_trap(); }
#else
#include <execinfo.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

class AssertionError : public std::runtime_error {
 public:
  AssertionError(const char* condition, const char* file, int line)
      : std::runtime_error(std::string("assertion failed: ") + condition + " at " + file + ":" + std::to_string(line)),
        condition_(condition),
        file_(file),
        line_(line) {}
  const char* condition() const { return condition_; }  // the asserted expression, as written
  const char* file() const { return file_; }
  int line() const { return line_; }

 private:
  const char* condition_;  // literals: they live as long as the code that holds them
  const char* file_;
  int line_;
};

// The calling thread's stack, a line for each frame, without the innermost `skip` frames.
inline std::string get_stacktrace(int skip = 1) {
  void* frames[64];
  const int count = backtrace(frames, 64);
  char** names = backtrace_symbols(frames, count);
  std::string text;
  for (int i = skip < 0 ? 0 : skip; names != nullptr && i < count; ++i) (text += names[i]) += '\n';
  std::free(names);
  return text;
}

[[noreturn]] inline void assert_impl(const char* condition, const char* file, int line) {
  throw AssertionError(condition, file, line);
}
#endif

#ifndef always_assert
#define always_assert(condition) ((condition) ? static_cast<void>(0) : assert_impl(#condition, __FILE__, __LINE__))
#endif
#ifndef debug_assert
#ifdef NDEBUG
#define debug_assert(condition) static_cast<void>(0)
#else
#define debug_assert(condition) always_assert(condition)
#endif
#endif
