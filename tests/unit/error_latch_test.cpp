// The one failure of a run.
#include "graph/error_latch.h"

#include <atomic>
#include <barrier>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace simpler::graph {
namespace {

using abi::ErrorCode;

TEST(ErrorLatch, KeepsTheFirstCodeAndText) {
  ErrorLatch latch;
  EXPECT_FALSE(latch.raised());
  EXPECT_FALSE(latch.ready());
  EXPECT_TRUE(latch.raise(ErrorCode::HEAP_RING_DEADLOCK, "ring %d of %s", 3, "four"));
  EXPECT_FALSE(latch.raise(ErrorCode::INVALID_ARGS, "second"));
  EXPECT_TRUE(latch.raised());
  EXPECT_TRUE(latch.ready());
  EXPECT_EQ(latch.code(), 2);
  EXPECT_STREQ(latch.text(), "ring 3 of four");
}

TEST(ErrorLatch, CountsCodesThatAreNotPositiveAsTheOrchestrationsOwn) {
  for (std::int32_t code : {0, -1, INT32_MIN}) {
    ErrorLatch latch;
    EXPECT_TRUE(latch.raise(code, "stop"));
    EXPECT_EQ(latch.code(), static_cast<int>(ErrorCode::EXPLICIT_ORCH_FATAL)) << code;
  }
  ErrorLatch latch;
  latch.raise(4711, "a code of the user's own");
  EXPECT_EQ(latch.code(), 4711);
}

TEST(ErrorLatch, CutsLongTextsAndSaysSo) {
  ErrorLatch latch;
  const std::string fits(ErrorLatch::kTextBytes - 1, 'x'), too_long(ErrorLatch::kTextBytes, 'x');
  latch.raise(5, "%s", fits.c_str());
  EXPECT_EQ(latch.text(), fits);
  latch.clear();
  latch.raise(5, "%s", too_long.c_str());
  EXPECT_EQ(std::string(latch.text()).size(), ErrorLatch::kTextBytes - 1);
  EXPECT_EQ(std::string(latch.text()).substr(ErrorLatch::kTextBytes - 5), "x...");
}

TEST(ErrorLatch, LatchesAgainAfterClear) {
  ErrorLatch latch;
  latch.raise(5, "old");
  latch.clear();
  EXPECT_FALSE(latch.raised());
  EXPECT_EQ(latch.code(), 0);
  EXPECT_STREQ(latch.text(), "");
  EXPECT_TRUE(latch.raise(9, "new"));
  EXPECT_STREQ(latch.text(), "new");
}

// Code and text are plain memory: TSAN reports a weaker order between ready() and what it promises.
TEST(ErrorLatchRace, ExactlyOneOfManyWritersWinsAndItsTextIsWhole) {
  constexpr int kThreads = 4, kRounds = 500;
  ErrorLatch latch;
  std::atomic<int> wins{0};
  std::atomic<int> winner{-1};
  std::barrier start(kThreads + 1), end(kThreads + 1);
  std::vector<std::thread> writers;
  for (int t = 0; t < kThreads; ++t) {
    writers.emplace_back([&, t] {
      for (int round = 0; round < kRounds; ++round) {
        start.arrive_and_wait();
        if (latch.raise(100 + t, "thread %d in round %d", t, round)) {
          wins.fetch_add(1);
          winner.store(t);
        }
        end.arrive_and_wait();
      }
    });
  }
  for (int round = 0; round < kRounds; ++round) {
    start.arrive_and_wait();
    while (!latch.ready()) std::this_thread::yield();
    const int code = latch.code();
    const std::string text = latch.text();
    end.arrive_and_wait();
    EXPECT_EQ(wins.exchange(0), 1);
    EXPECT_EQ(code, 100 + winner.load());
    EXPECT_EQ(text, "thread " + std::to_string(winner.load()) + " in round " + std::to_string(round));
    latch.clear();
  }
  for (std::thread& writer : writers) writer.join();
}

}  // namespace
}  // namespace simpler::graph
