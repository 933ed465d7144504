// The ring of output memory: which request fits when, and that live blocks never share a byte.
#include "graph/heap_ring.h"

#include <deque>

#include <gtest/gtest.h>

#include "unit/support/seed.h"

namespace simpler::graph {
namespace {

constexpr std::uint64_t kNo = HeapRing::kDoesNotFit;

HeapRing ring_of(std::uint64_t capacity) {
  HeapRing ring;
  ring.reset(capacity);
  return ring;
}

TEST(HeapRing, HoldsOneBlockOfItsWholeCapacityAndNoMore) {
  HeapRing ring = ring_of(1024);
  EXPECT_EQ(ring.place(1025), kNo);
  EXPECT_EQ(ring.allocate(1024), 0u);
  EXPECT_EQ(ring.used(), 1024u);
  EXPECT_EQ(ring.allocate(1), kNo);
  ring.release(1024);
  EXPECT_EQ(ring.used(), 0u);
  EXPECT_EQ(ring.allocate(1024), 0u);
}

TEST(HeapRing, NeverPlacesABlockAcrossTheEnd) {
  HeapRing ring = ring_of(1000);
  EXPECT_EQ(ring.allocate(450), 0u);
  EXPECT_EQ(ring.allocate(450), 450u);
  EXPECT_EQ(ring.allocate(101), kNo) << "100 are left at the end";
  ring.release(450);
  EXPECT_EQ(ring.allocate(101), 0u) << "550 are free, but not in one piece";
  EXPECT_EQ(ring.allocate(349), kNo) << "top would meet tail";
  EXPECT_EQ(ring.allocate(348), 101u);
}

TEST(HeapRing, NeedsMoreThanTheRequestToWrap) {
  HeapRing ring = ring_of(1000);
  ASSERT_EQ(ring.allocate(500), 0u);
  ASSERT_EQ(ring.allocate(500), 500u);
  ring.release(500);
  EXPECT_EQ(ring.place(500), kNo) << "full and empty would look the same";
  EXPECT_EQ(ring.place(499), 0u);
}

TEST(HeapRing, FillsTheEndExactly) {
  HeapRing ring = ring_of(1000);
  ASSERT_EQ(ring.allocate(600), 0u);
  EXPECT_EQ(ring.allocate(400), 600u);
  EXPECT_EQ(ring.place(1), kNo);
  ring.release(600);
  EXPECT_EQ(ring.place(600), kNo);
  EXPECT_EQ(ring.allocate(599), 0u);
}

TEST(HeapRing, StartsOverWhenEmptySoThatAnyRequestUpToTheCapacityFits) {
  HeapRing ring = ring_of(1000);
  ASSERT_EQ(ring.allocate(300), 0u);
  ASSERT_EQ(ring.allocate(300), 300u);
  ring.release(300);
  ring.release(600);
  EXPECT_EQ(ring.allocate(1000), 0u);
}

TEST(HeapRing, PlaceSaysWhatAllocateDoesAndChangesNothing) {
  HeapRing ring = ring_of(1000);
  ring.allocate(10);
  EXPECT_EQ(ring.place(20), 10u);
  EXPECT_EQ(ring.place(30), 10u);
  EXPECT_EQ(ring.used(), 10u);
  EXPECT_EQ(ring.allocate(30), 10u);
}

TEST(HeapRing, LiveBlocksStayInsideAndNeverShareAByte) {
  test::for_each_seed(50, [](std::uint64_t seed) {
    test::Random random(seed);
    const std::uint64_t capacity = random.number(1, 200);
    HeapRing ring = ring_of(capacity);
    struct Block {
      std::uint64_t begin, end;
    };
    std::deque<Block> live;
    std::uint64_t tail = 0;  // end of the block given back last
    for (int step = 0; step < 2000; ++step) {
      if (live.empty() || random.chance(55)) {
        const std::uint64_t bytes = random.number(1, static_cast<std::uint32_t>(capacity) + 2);
        // The first gap that holds it: up to the oldest byte in use, or up to the end, then from 0. A gap that ends at
        // bytes in use must stay open by one byte.
        std::uint64_t expected = kNo;
        if (live.empty()) {
          expected = bytes <= capacity ? 0 : kNo;
        } else if (const std::uint64_t top = live.back().end; top <= tail && tail != 0) {
          expected = top + bytes < tail ? top : kNo;
        } else if (top + bytes <= capacity) {
          expected = top;
        } else if (bytes < tail) {
          expected = 0;
        }
        const std::uint64_t offset = ring.allocate(bytes);
        ASSERT_EQ(offset, expected) << bytes << " of " << capacity << " bytes in step " << step;
        if (offset == kNo) continue;
        const Block fresh{offset, offset + bytes};
        ASSERT_LE(fresh.end, capacity);
        for (const Block& block : live) ASSERT_TRUE(fresh.end <= block.begin || block.end <= fresh.begin) << step;
        if (live.empty()) tail = 0;
        live.push_back(fresh);
      } else {
        tail = live.front().end;
        ring.release(tail);
        live.pop_front();
      }
      std::uint64_t bytes = 0;
      for (const Block& block : live) bytes += block.end - block.begin;
      ASSERT_GE(ring.used(), bytes);
      ASSERT_LE(ring.used(), capacity);
    }
  });
}

}  // namespace
}  // namespace simpler::graph
