// Verdict: the answer of a validator that reads plain structs. Empty text means valid.
//
// What      A fixed text buffer, so that validators need no allocation and run in the device's own processors too.
// Cost      valid: one zero byte is written.
#pragma once
#include <cstdarg>
#include <cstdio>

namespace simpler::abi {

class Verdict {
 public:
  bool ok() const { return text_[0] == '\0'; }
  // What is wrong: the field, its value, what is allowed. "" when ok().
  const char* text() const { return text_; }

  static Verdict valid() { return Verdict(); }
  [[gnu::format(printf, 1, 2)]] static Verdict invalid(const char* pattern, ...) {
    Verdict verdict;
    va_list args;
    va_start(args, pattern);
    std::vsnprintf(verdict.text_, sizeof(verdict.text_), pattern, args);
    va_end(args);
    return verdict;
  }

 private:
  char text_[320] = "";
};

}  // namespace simpler::abi
