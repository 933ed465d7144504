// Nesting: rings by depth, the rules of manual scopes, and the oldest task that an open scope owns.
#include "graph/scopes.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "unit/support/seed.h"

namespace simpler::graph {
namespace {

using Mode = PTO2ScopeMode;
using Refusal = Scopes::Refusal;

TEST(Scopes, DepthsFromTheThirdOnShareTheLastRing) {
  Scopes scopes;
  EXPECT_FALSE(scopes.any());
  const int rings[] = {0, 1, 2, 3, 3, 3};
  for (int depth = 0; depth < 6; ++depth) {
    ASSERT_EQ(scopes.open(Mode::AUTO), Refusal::kNone);
    EXPECT_EQ(scopes.depth(), depth + 1);
    EXPECT_EQ(scopes.ring(), rings[depth]);
  }
  for (int depth = 5; depth >= 0; --depth) {
    EXPECT_EQ(scopes.ring(), rings[depth]);
    scopes.close();
  }
  EXPECT_FALSE(scopes.any());
}

TEST(Scopes, NestSixtyFourDeepAndNoDeeper) {
  Scopes scopes;
  for (int depth = 0; depth < 64; ++depth) ASSERT_EQ(scopes.open(Mode::AUTO), Refusal::kNone) << depth;
  EXPECT_EQ(scopes.open(Mode::AUTO), Refusal::kTooDeep);
  EXPECT_EQ(scopes.depth(), 64);
  scopes.close();
  EXPECT_EQ(scopes.open(Mode::MANUAL), Refusal::kNone);
}

TEST(Scopes, AreManualFromTheOutermostManualOneInwards) {
  Scopes scopes;
  scopes.open(Mode::AUTO);
  EXPECT_FALSE(scopes.manual());
  scopes.open(Mode::MANUAL);
  EXPECT_TRUE(scopes.manual());
  EXPECT_EQ(scopes.open(Mode::AUTO), Refusal::kAutoInManual);
  EXPECT_EQ(scopes.open(Mode::MANUAL), Refusal::kNone);
  EXPECT_EQ(scopes.open(Mode::AUTO), Refusal::kAutoInManual);
  scopes.close();
  EXPECT_TRUE(scopes.manual()) << "the outer manual scope is still open";
  EXPECT_EQ(scopes.open(Mode::AUTO), Refusal::kAutoInManual);
  scopes.close();
  EXPECT_FALSE(scopes.manual());
  EXPECT_EQ(scopes.open(Mode::AUTO), Refusal::kNone);
}

TEST(Scopes, CountTasksOfTheInnermostScopeOnly) {
  Scopes scopes;
  scopes.open(Mode::AUTO);
  scopes.enter(0);
  scopes.enter(1);
  EXPECT_EQ(scopes.task_count(), 2u);
  scopes.open(Mode::AUTO);
  EXPECT_EQ(scopes.task_count(), 0u);
  scopes.enter(0);
  scopes.close();
  EXPECT_EQ(scopes.task_count(), 2u);
  scopes.close();
  scopes.open(Mode::AUTO);
  EXPECT_EQ(scopes.task_count(), 0u) << "a scope of the same depth starts empty";
}

TEST(Scopes, ForgetEverythingWhenCleared) {
  Scopes scopes;
  scopes.open(Mode::MANUAL);
  scopes.enter(7);
  scopes.clear();
  EXPECT_FALSE(scopes.any());
  EXPECT_FALSE(scopes.manual());
  std::uint32_t local;
  EXPECT_FALSE(scopes.oldest_owned(0, &local));
  EXPECT_EQ(scopes.open(Mode::AUTO), Refusal::kNone);
}

TEST(Scopes, KnowTheOldestTaskThatAnOpenScopeOwnsOfEachRing) {
  test::for_each_seed(100, [](std::uint64_t seed) {
    test::Random random(seed);
    Scopes scopes;
    std::vector<std::vector<std::uint32_t>> open;  // local ids, by scope
    std::uint32_t next[kRings] = {};
    for (int step = 0; step < 400; ++step) {
      const std::uint32_t what = random.number(0, 9);
      if (open.empty() || (what < 3 && open.size() < 10)) {
        ASSERT_EQ(scopes.open(Mode::AUTO), Refusal::kNone);
        open.emplace_back();
      } else if (what < 6) {
        scopes.close();
        open.pop_back();
      } else {
        const int ring = scopes.ring();
        ASSERT_EQ(ring, std::min<int>(static_cast<int>(open.size()) - 1, kRings - 1));
        scopes.enter(next[ring]);
        open.back().push_back(next[ring]++);
      }
      for (int ring = 0; ring < kRings; ++ring) {
        std::optional<std::uint32_t> expected;
        for (std::size_t depth = 0; depth < open.size(); ++depth) {
          if (std::min<int>(static_cast<int>(depth), kRings - 1) != ring) continue;
          for (std::uint32_t local : open[depth]) expected = std::min(expected.value_or(local), local);
        }
        std::uint32_t local = 0;
        ASSERT_EQ(scopes.oldest_owned(ring, &local), expected.has_value()) << "ring " << ring << ", step " << step;
        ASSERT_EQ(local, expected.value_or(0)) << "ring " << ring << ", step " << step;
      }
    }
  });
}

}  // namespace
}  // namespace simpler::graph
