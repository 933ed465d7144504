// Waiting for a word in memory to change, also across processes that share the memory. Linux.
#pragma once
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

namespace simpler {

// Returns when the word is no longer `seen`, when it was woken, when the limit passed, or for no reason: ask again.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, std::int64_t limit_ns) {
  const timespec limit{static_cast<std::time_t>(limit_ns / 1'000'000'000), static_cast<long>(limit_ns % 1'000'000'000)};
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

inline void futex_wake_all(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

static_assert(sizeof(std::atomic<std::uint32_t>) == 4 && std::atomic<std::uint32_t>::is_always_lock_free,
              "the kernel compares the word itself");

}  // namespace simpler
