// The consumers of one task: told once each, never late, never those of a successor.
#include "graph/wake_list.h"
#include <gtest/gtest.h>
#include <barrier>
#include <thread>
#include <vector>
using namespace simpler::graph;
const auto kNobody = [](std::uint32_t consumer) { ADD_FAILURE() << "woke " << consumer; };

TEST(WakeList, WakesEachConsumerOnceAndLetsItReuseItsEdge) {
  Edge edges[] = {{0, 10}, {0, 11}};
  WakeList list;
  list.reopen(1);
  for (std::uint32_t e : {0u, 1u}) ASSERT_EQ(list.link(edges, e, 1), Link::kWaiting);
  std::vector<std::uint32_t> woken;
  list.complete(edges, 1, [&](std::uint32_t consumer) {
    woken.push_back(consumer);
    edges[consumer - 10].next = 0xFFFFFFFF;  // reused at once: a walk that reads `next` only now stops early
  });
  EXPECT_EQ(woken, (std::vector<std::uint32_t>{11, 10}));
}

TEST(WakeList, AnswersDoneWhenClosedAndNeverLinksOntoASuccessor) {
  WakeList list;
  Edge edge{0, 10};
  EXPECT_EQ(list.link(&edge, 0, 0), Link::kProducerDone) << "never opened";
  list.reopen(1);
  list.complete(&edge, 1, kNobody);
  EXPECT_EQ(list.link(&edge, 0, 1), Link::kProducerDone) << "completed";
  list.reopen(2);
  EXPECT_EQ(list.link(&edge, 0, 1), Link::kProducerDone) << "the slot holds the next task";
  list.complete(&edge, 2, kNobody);
  EXPECT_DEATH(list.complete(&edge, 2, kNobody), "generation 2 completed twice");
}

TEST(WakeList, IsDoneFromCompletionOnAndForAllOlderGenerations) {
  WakeList list;
  EXPECT_TRUE(list.done(0));
  list.reopen(1);
  EXPECT_FALSE(list.done(1));
  list.complete(nullptr, 1, kNobody);
  EXPECT_TRUE(list.done(1));
  list.reopen(2);
  EXPECT_TRUE(list.done(1)) << "the slot holds the next task";
  EXPECT_FALSE(list.done(2));
}

// Each pair of orders alone: `go` tells the other side that it may start, but is relaxed and orders nothing, so only the
// list stands between two accesses to plain memory, and TSAN reports whichever order is too weak.
TEST(WakeListRace, ALinkerThatIsAnsweredDoneMayReadTheOutput) {
  for (const bool ask : {false, true}) {
    WakeList list;
    Edge edge{0, 10};
    std::uint32_t output = 0;
    std::atomic<bool> go{false};
    list.reopen(1);
    std::thread worker([&] {
      output = 7;
      list.complete(nullptr, 1, kNobody);  // [C]
      go.store(true, std::memory_order_relaxed);
    });
    while (!go.load(std::memory_order_relaxed)) std::this_thread::yield();
    if (ask) {
      EXPECT_TRUE(list.done(1));  // [A]
    } else {
      EXPECT_EQ(list.link(&edge, 0, 1), Link::kProducerDone);  // [A]
    }
    EXPECT_EQ(output, 7u);
    worker.join();
  }
}

TEST(WakeListRace, TheCompletingThreadMayReadWhatTheLinkerWrote) {
  WakeList list;
  Edge edge{0, 0};
  std::uint32_t woken = 0;
  std::atomic<bool> go{false};
  list.reopen(1);
  std::thread worker([&] {
    while (!go.load(std::memory_order_relaxed)) std::this_thread::yield();
    list.complete(&edge, 1, [&](std::uint32_t consumer) { woken = consumer; });  // [C]
  });
  edge.consumer = 10;
  EXPECT_EQ(list.link(&edge, 0, 1), Link::kWaiting);  // [B]
  go.store(true, std::memory_order_relaxed);
  worker.join();
  EXPECT_EQ(woken, 10u);
}

// Linked in time, found closed, found the successor: all three in one race. `output` and `edges` are plain memory, so
// TSAN reports a weakened [A], [B] or [C]. [D] rests on the header's argument: TSAN lets a release outlive a store.
TEST(WakeListRace, EachLinkIsEitherWokenOrAnsweredDone) {
  constexpr std::uint32_t kRounds = 30000, kEdges = 16;
  WakeList list;
  Edge edges[kEdges];
  std::uint32_t output = 0, woken = 0, done = 0;
  std::atomic<std::uint32_t> linked{0};  // aims the close at each position in turn; relaxed, so it orders nothing
  std::barrier round_end(2);
  list.reopen(1);
  std::thread worker([&] {
    for (std::uint32_t g = 1; g <= kRounds; ++g) {
      output = g;
      while (linked.load(std::memory_order_relaxed) < (g - 1) * kEdges + g % kEdges) std::this_thread::yield();
      list.complete(edges, g, [&](std::uint32_t consumer) { woken += consumer == g; });
      list.reopen(g + 1);  // plays the submitter that reclaims at once
      round_end.arrive_and_wait();
    }
  });
  for (std::uint32_t g = 1; g <= kRounds; ++g) {
    for (std::uint32_t e = 0; e < kEdges; ++e, linked.fetch_add(1, std::memory_order_relaxed)) {
      edges[e].consumer = g;
      if (list.link(edges, e, g) == Link::kProducerDone) done += output == g;
    }
    round_end.arrive_and_wait();
    EXPECT_EQ(woken + done, g * kEdges) << "a wake-up was lost or doubled";
  }
  worker.join();
}
