// Memory of task records: no two live records overlap, chunks are used again while warm, the limit is answered.
#include "graph/record_arena.h"

#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "unit/support/seed.h"

namespace simpler::graph {
namespace {

constexpr std::size_t kChunk = RecordArena::kChunkBytes;

std::size_t offset_of(RecordRef record) { return std::size_t{record} * 8; }

TEST(RecordArena, GivesOutAlignedRecordsThatNeverOverlap) {
  test::for_each_seed(20, [](std::uint64_t seed) {
    test::Random random(seed);
    RecordArena arena;
    ASSERT_TRUE(arena.reserve(64 * kChunk));
    struct Record {
      int ring;
      RecordRef ref;
    };
    std::vector<Record> live;
    std::map<std::size_t, std::size_t> ranges;  // begin -> end
    for (int step = 0; step < 3000; ++step) {
      if (live.empty() || random.chance(52)) {
        const int ring = static_cast<int>(random.number(0, 3));
        const bool large = random.chance(2);
        const std::size_t bytes = 64 * (large ? random.number(1024, 3000) : random.number(1, 100));
        const RecordRef ref = arena.allocate(ring, bytes);
        if (ref == kNoRecord) {
          ASSERT_FALSE(live.empty()) << "an empty arena of 64 chunks has room for " << bytes << " bytes";
          continue;
        }
        const std::size_t begin = offset_of(ref), end = begin + bytes;
        ASSERT_EQ(begin % 64, 0u);
        ASSERT_LE(end, 64 * kChunk);
        const auto after = ranges.lower_bound(begin);
        ASSERT_TRUE(after == ranges.end() || after->first >= end) << "step " << step;
        ASSERT_TRUE(after == ranges.begin() || std::prev(after)->second <= begin) << "step " << step;
        ranges[begin] = end;
        live.push_back({ring, ref});
      } else {
        Record& victim = random.pick(live);
        ranges.erase(offset_of(victim.ref));
        arena.release(victim.ring, victim.ref);
        victim = live.back();
        live.pop_back();
      }
    }
  });
}

TEST(RecordArena, UsesTheSameWarmLinesAgainWhenAStreamNeverGrows) {
  RecordArena arena;
  ASSERT_TRUE(arena.reserve(64 * kChunk));
  std::set<std::size_t> chunks;
  for (int i = 0; i < 10000; ++i) {
    const RecordRef ref = arena.allocate(2, 640);
    chunks.insert(offset_of(ref) / kChunk);
    arena.release(2, ref);
  }
  EXPECT_EQ(chunks.size(), 1u);
}

TEST(RecordArena, TakesTheChunkThatWasFreedLast) {
  RecordArena arena;
  ASSERT_TRUE(arena.reserve(8 * kChunk));
  RecordRef records[4];
  for (RecordRef& record : records) record = arena.allocate(0, kChunk);
  arena.release(0, records[0]);
  arena.release(0, records[2]);
  EXPECT_EQ(arena.allocate(0, 64), records[2]);
}

TEST(RecordArena, KeepsRingsInChunksOfTheirOwn) {
  RecordArena arena;
  ASSERT_TRUE(arena.reserve(8 * kChunk));
  std::set<std::size_t> chunks;
  for (int ring = 0; ring < RecordArena::kRings; ++ring) chunks.insert(offset_of(arena.allocate(ring, 64)) / kChunk);
  EXPECT_EQ(chunks.size(), 4u);
}

TEST(RecordArena, AnswersNoRecordWhenFullAndRecoversAfterARelease) {
  RecordArena arena;
  ASSERT_TRUE(arena.reserve(2 * kChunk));
  const RecordRef first = arena.allocate(0, kChunk);
  const RecordRef second = arena.allocate(1, kChunk);
  ASSERT_NE(second, kNoRecord);
  EXPECT_EQ(arena.allocate(2, 64), kNoRecord);
  EXPECT_EQ(arena.allocate(0, 64), kNoRecord);
  EXPECT_EQ(arena.allocate(0, 2 * kChunk), kNoRecord);
  arena.release(0, first);
  EXPECT_EQ(arena.allocate(0, 64), first);
}

TEST(RecordArena, GivesARecordLargerThanAChunkASpanThatIsUsedAgain) {
  RecordArena arena;
  ASSERT_TRUE(arena.reserve(16 * kChunk));
  const RecordRef small = arena.allocate(0, 64);
  const RecordRef span = arena.allocate(0, 3 * kChunk + 64);
  const RecordRef next = arena.allocate(0, 64);
  EXPECT_EQ(offset_of(next), offset_of(small) + 64) << "the span leaves the current chunk alone";
  EXPECT_EQ(arena.allocate(0, 13 * kChunk), kNoRecord);
  arena.release(0, span);
  EXPECT_EQ(arena.allocate(1, 4 * kChunk), span);
}

TEST(RecordArena, ForgetsEverythingAtOnce) {
  RecordArena arena;
  ASSERT_TRUE(arena.reserve(2 * kChunk));
  for (int round = 0; round < 3; ++round) {
    EXPECT_NE(arena.allocate(0, kChunk), kNoRecord) << round;
    EXPECT_NE(arena.allocate(3, kChunk), kNoRecord) << round;
    EXPECT_EQ(arena.allocate(3, 64), kNoRecord) << round;
    arena.clear();
  }
}

TEST(RecordArenaDeath, ARecordReleasedTwiceEndsTheProcess) {
  RecordArena arena;
  ASSERT_TRUE(arena.reserve(2 * kChunk));
  const RecordRef record = arena.allocate(0, 64);
  arena.release(0, record);
  EXPECT_DEATH(arena.release(0, record), "record 0 released twice");
}

TEST(RecordArena, NamesEdgesByTheirPlaceBehindTheTask) {
  RecordArena arena;
  ASSERT_TRUE(arena.reserve(kChunk));
  const RecordRef record = arena.allocate(0, Task::bytes(3, 0, 0, false));
  Task* task = arena.at(record);
  task->edge_count = 3;
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(&arena.edges()[RecordArena::edge_of(record, i)], task->edges() + i);
}

}  // namespace
}  // namespace simpler::graph
