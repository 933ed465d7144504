// Randomness of tests: one seed per case, printed when the case fails, so that the failure can be repeated.
//
// SIMPLER_TEST_SEED=N        runs only seed N
// SIMPLER_TEST_PROGRAMS=N    runs N cases instead of the test's own number
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <random>

namespace simpler::test {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  // Uniform in [low, high].
  std::uint32_t number(std::uint32_t low, std::uint32_t high) {
    return low + static_cast<std::uint32_t>(engine_() % (std::uint64_t{high} - low + 1));
  }
  bool chance(std::uint32_t percent) { return number(1, 100) <= percent; }
  template <typename Container> auto& pick(Container& items) {
    return items[number(0, static_cast<std::uint32_t>(items.size()) - 1)];
  }
  template <typename Container> void shuffle(Container& items) {
    for (std::size_t i = items.size(); i > 1; --i) {
      std::swap(items[i - 1], items[number(0, static_cast<std::uint32_t>(i) - 1)]);
    }
  }

 private:
  std::mt19937_64 engine_;
};

// Calls run(seed) for seeds 1, 2, ... and stops after the first that fails.
template <typename Run> void for_each_seed(std::uint64_t count, Run run) {
  std::uint64_t first = 1;
  if (const char* text = std::getenv("SIMPLER_TEST_PROGRAMS")) count = std::strtoull(text, nullptr, 10);
  if (const char* text = std::getenv("SIMPLER_TEST_SEED")) {
    first = std::strtoull(text, nullptr, 10);
    count = 1;
  }
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(testing::Message() << "repeat with SIMPLER_TEST_SEED=" << seed);
    run(seed);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace simpler::test
