// A number of the calling thread that no other thread of the process ever has, unlike the system's thread ids.
#pragma once
#include <atomic>
#include <cstdint>

namespace simpler {

inline std::uint64_t thread_serial() {
  static std::atomic<std::uint64_t> next{1};
  thread_local const std::uint64_t serial = next.fetch_add(1);
  return serial;
}

}  // namespace simpler
