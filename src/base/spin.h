// Short waits for another thread that is about to act. On an idle machine a sleeping CPU takes 30 to 50 us to wake up, so
// a wait that is usually shorter than that is worth spinning for; a longer one belongs to a condition variable.
#pragma once
#include <chrono>
#include <thread>

namespace simpler {

// Tells the CPU that this is a spin loop.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// True as soon as done() answers true; false after `limit`. Gives way to other threads of this CPU between two questions.
template <typename Done> bool spin_for(std::chrono::nanoseconds limit, Done done) {
  const auto begin = std::chrono::steady_clock::now();
  do {
    if (done()) return true;
    for (int i = 0; i < 8; ++i) relax();
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() - begin < limit);
  return false;
}

}  // namespace simpler
