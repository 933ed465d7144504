// The queue of ready tasks: first in, first out, each taken once, in batches that leave others their share.
#include "executor/work_ring.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace simpler::executor {
namespace {

std::vector<graph::RecordRef> take(WorkRing& ring, std::uint32_t most, std::uint32_t share) {
  std::vector<graph::RecordRef> out(most);
  out.resize(ring.take(out.data(), most, share));
  return out;
}

TEST(WorkRing, IsFirstInFirstOut) {
  WorkRing ring;
  ASSERT_TRUE(ring.configure(8));
  EXPECT_TRUE(take(ring, 4, 1).empty());
  for (graph::RecordRef i = 0; i < 5; ++i) ring.push(i);
  EXPECT_EQ(ring.size(), 5u);
  EXPECT_EQ(take(ring, 2, 1), (std::vector<graph::RecordRef>{0, 1}));
  EXPECT_EQ(take(ring, 9, 1), (std::vector<graph::RecordRef>{2, 3, 4}));
  EXPECT_EQ(ring.size(), 0u);
}

TEST(WorkRing, GivesATakerItsShareRoundedUp) {
  WorkRing ring;
  ASSERT_TRUE(ring.configure(64));
  for (graph::RecordRef i = 0; i < 10; ++i) ring.push(i);
  EXPECT_EQ(take(ring, 16, 4).size(), 3u) << "a quarter of 10";
  EXPECT_EQ(take(ring, 2, 2).size(), 2u) << "no more than asked for";
  EXPECT_EQ(take(ring, 16, 100).size(), 1u) << "at least one";
  EXPECT_EQ(ring.size(), 4u);
}

TEST(WorkRing, GoesRoundAsOftenAsNeeded) {
  WorkRing ring;
  ASSERT_TRUE(ring.configure(100));
  graph::RecordRef pushed = 0, taken = 0;
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 100; ++i) ring.push(pushed++);
    for (graph::RecordRef record : take(ring, 100, 1)) ASSERT_EQ(record, taken++);
  }
  EXPECT_EQ(taken, pushed);
}

TEST(WorkRing, KeepsItsContentsIfItIsLargeEnoughAlready) {
  WorkRing ring;
  ASSERT_TRUE(ring.configure(1000));
  ring.push(1);
  ASSERT_TRUE(ring.configure(1000));
  EXPECT_EQ(ring.size(), 1u);
  ring.clear();
  EXPECT_EQ(ring.size(), 0u);
}

// `payload` is plain memory that only push and take order: TSAN reports a weakened release or acquire.
TEST(WorkRingRace, EachTaskIsTakenOnceByOneOfSeveralTakersWithItsContents) {
  constexpr std::uint32_t kTasks = 60000, kTakers = 3, kWindow = 64;
  WorkRing ring;
  ASSERT_TRUE(ring.configure(kWindow));
  std::vector<std::uint32_t> payload(kTasks, 0);
  std::vector<std::atomic<std::uint32_t>> times(kTasks);
  std::atomic<std::uint32_t> done{0}, wrong{0};
  std::vector<std::thread> takers;
  for (std::uint32_t t = 0; t < kTakers; ++t) {
    takers.emplace_back([&, t] {
      graph::RecordRef batch[8];
      while (done.load(std::memory_order_relaxed) < kTasks) {
        const std::uint32_t count = ring.take(batch, t == 0 ? 1 : 8, t + 1);
        for (std::uint32_t i = 0; i < count; ++i) {
          wrong += payload[batch[i]] != batch[i] + 1;
          times[batch[i]].fetch_add(1, std::memory_order_relaxed);
        }
        // Release: the owner reuses a cell only when its task is done, as a task window makes sure.
        if (count > 0)
          done.fetch_add(count, std::memory_order_release);
        else
          std::this_thread::yield();
      }
    });
  }
  for (std::uint32_t i = 0; i < kTasks; ++i) {
    while (i - done.load(std::memory_order_acquire) >= kWindow) std::this_thread::yield();
    payload[i] = i + 1;
    ring.push(i);
  }
  for (std::thread& taker : takers) taker.join();
  EXPECT_EQ(wrong.load(), 0u);
  for (std::uint32_t i = 0; i < kTasks; ++i) ASSERT_EQ(times[i].load(), 1u) << i;
}

}  // namespace
}  // namespace simpler::executor
