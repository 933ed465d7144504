// Ring sizes: the run's configuration, else the environment, else the defaults, entry by entry.
#include "host/ring_config.h"

#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace simpler::host {
namespace {

using Sizes = std::vector<std::uint64_t>;

Sizes list(const std::uint64_t (&entries)[4]) { return {entries, entries + 4}; }

class RingConfig : public testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  static void clear() {
    for (const char* name : {"PTO2_RING_TASK_WINDOW", "PTO2_RING_HEAP", "PTO2_RING_DEP_POOL"}) unsetenv(name);
  }
};

TEST_F(RingConfig, HasDefaults) {
  const abi::RuntimeEnv rings = resolve_rings({});
  EXPECT_EQ(list(rings.ring_task_window), Sizes(4, 16384));
  EXPECT_EQ(list(rings.ring_heap), Sizes(4, 268435456));
  EXPECT_EQ(list(rings.ring_dep_pool), Sizes(4, 16384));
}

TEST_F(RingConfig, OneNumberInTheEnvironmentIsForAllRingsAndFourAreForEach) {
  setenv("PTO2_RING_TASK_WINDOW", "64", 1);
  setenv("PTO2_RING_HEAP", "1024,2048,4096,8192", 1);
  const abi::RuntimeEnv rings = resolve_rings({});
  EXPECT_EQ(list(rings.ring_task_window), Sizes(4, 64));
  EXPECT_EQ(list(rings.ring_heap), (Sizes{1024, 2048, 4096, 8192}));
  EXPECT_EQ(list(rings.ring_dep_pool), Sizes(4, 16384));
}

TEST_F(RingConfig, TheRunsOwnEntriesComeBeforeTheEnvironmentOneByOne) {
  setenv("PTO2_RING_TASK_WINDOW", "8,16,32,64", 1);
  abi::RuntimeEnv configured{};
  configured.ring_task_window[1] = 4;
  configured.ring_heap[3] = 5000;
  const abi::RuntimeEnv rings = resolve_rings(configured);
  EXPECT_EQ(list(rings.ring_task_window), (Sizes{8, 4, 32, 64}));
  EXPECT_EQ(list(rings.ring_heap), (Sizes{268435456, 268435456, 268435456, 5000}));
}

TEST_F(RingConfig, AnEnvironmentValueThatIsNotAllowedIsIgnoredWithAWarning) {
  for (const char* text : {"5", "2", "0", "-8", "8,16", "8,16,32", "8,16,32,64,128", "8,16,32,63", "8 ", " 8", "8,,8,8",
                           "8,16,32,", "eight", "0x10", "99999999999999999999", "4294967296"}) {
    setenv("PTO2_RING_TASK_WINDOW", text, 1);
    testing::internal::CaptureStderr();
    const abi::RuntimeEnv rings = resolve_rings({});
    const std::string warning = testing::internal::GetCapturedStderr();
    EXPECT_EQ(list(rings.ring_task_window), Sizes(4, 16384)) << '"' << text << '"';
    EXPECT_NE(warning.find(std::string("PTO2_RING_TASK_WINDOW=") + text + " is ignored"), std::string::npos) << warning;
  }
  setenv("PTO2_RING_HEAP", "1023", 1);
  setenv("PTO2_RING_DEP_POOL", "3", 1);
  testing::internal::CaptureStderr();
  const abi::RuntimeEnv rings = resolve_rings({});
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(list(rings.ring_heap), Sizes(4, 268435456));
  EXPECT_EQ(list(rings.ring_dep_pool), Sizes(4, 16384));
}

TEST_F(RingConfig, AnEmptyEnvironmentValueIsNone) {
  setenv("PTO2_RING_HEAP", "", 1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(list(resolve_rings({}).ring_heap), Sizes(4, 268435456));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(RingConfig, TheSmallestSizesAreAllowed) {
  setenv("PTO2_RING_TASK_WINDOW", "4", 1);
  setenv("PTO2_RING_HEAP", "1024", 1);
  setenv("PTO2_RING_DEP_POOL", "4", 1);
  const abi::RuntimeEnv rings = resolve_rings({});
  EXPECT_EQ(list(rings.ring_task_window), Sizes(4, 4));
  EXPECT_EQ(list(rings.ring_heap), Sizes(4, 1024));
  EXPECT_EQ(list(rings.ring_dep_pool), Sizes(4, 4));
}

}  // namespace
}  // namespace simpler::host
