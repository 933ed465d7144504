// What a failed call of the software device leaves: its code is the answer, its text is here, for the thread that called.
#pragma once
#include <cstdint>
#include <string>
#include <utility>

#include "base/status.h"

namespace simpler::driver {

inline std::string& last_error() {
  thread_local std::string text;
  return text;
}
inline int fail(int code, std::string text) {
  last_error() = std::move(text);
  return code;
}
inline std::string hex(std::uint64_t value) { return format("0x%llx", static_cast<unsigned long long>(value)); }

}  // namespace simpler::driver
