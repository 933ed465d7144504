// The software device's allocation table.
#include "driver/soft/soft_memory.h"

#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace simpler::driver {
namespace {

using Freed = SoftMemory::Freed;

TEST(SoftMemory, GivesOutAlignedBlocksOfAnySize) {
  SoftMemory memory;
  const std::size_t sizes[] = {
      0, 1, 1023, 1024, 1025, SoftMemory::kLargeBytes - 1, SoftMemory::kLargeBytes, 5 * SoftMemory::kLargeBytes + 3};
  std::size_t total = 0;
  for (std::size_t bytes : sizes) {
    std::uint64_t address = 0;
    ASSERT_TRUE(memory.allocate(bytes, &address)) << bytes;
    EXPECT_EQ(address % SoftMemory::kAlignment, 0u) << bytes;
    std::memset(reinterpret_cast<void*>(address), 0xA5, bytes);
    total += bytes;
  }
  EXPECT_EQ(memory.count(), std::size(sizes));
  EXPECT_EQ(memory.total(), total);
}

TEST(SoftMemory, LargeBlocksCostNothingUntilTouched) {
  SoftMemory memory;
  std::uint64_t address = 0;
  ASSERT_TRUE(memory.allocate(std::size_t{64} << 30, &address)) << "64 GiB of address space";
  char* last = reinterpret_cast<char*>(address) + (std::size_t{64} << 30) - 1;
  EXPECT_EQ(*last, 0);
  *last = 1;
  EXPECT_EQ(memory.free(address), SoftMemory::Freed::kOk);
}

TEST(SoftMemory, KnowsTheRoomFromAnyAddressInsideABlock) {
  SoftMemory memory;
  std::uint64_t address = 0, next = 0;
  ASSERT_TRUE(memory.allocate(100, &address));
  ASSERT_TRUE(memory.allocate(50, &next));
  std::size_t room = 0;
  ASSERT_TRUE(memory.find(address, &room));
  EXPECT_EQ(room, 100u);
  ASSERT_TRUE(memory.find(address + 99, &room));
  EXPECT_EQ(room, 1u);
  EXPECT_FALSE(memory.find(address + 100, &room)) << "past the end, though the heap rounds up";
  EXPECT_FALSE(memory.find(0, &room));
  EXPECT_FALSE(memory.find(UINT64_MAX, &room));
}

TEST(SoftMemory, FreesWhatStartsThereOnceAndNothingElse) {
  SoftMemory memory;
  std::uint64_t address = 0;
  ASSERT_TRUE(memory.allocate(100, &address));
  EXPECT_EQ(memory.free(address + 1), Freed::kUnknown);
  EXPECT_EQ(memory.free(address), Freed::kOk);
  EXPECT_EQ(memory.free(address), Freed::kUnknown) << "freed already";
  EXPECT_EQ(memory.free(0), Freed::kUnknown);
  std::size_t room = 0;
  EXPECT_FALSE(memory.find(address, &room));
  EXPECT_EQ(memory.count(), 0u);
  EXPECT_EQ(memory.total(), 0u);
}

TEST(SoftMemory, RefusesWhatTheHostCannotProvide) {
  SoftMemory memory;
  std::uint64_t address = 0;
  EXPECT_FALSE(memory.allocate(std::size_t{1} << 62, &address));
  EXPECT_EQ(memory.count(), 0u);
}

TEST(SoftMemory, GuardBandsTellThatSomebodyWrotePastAnEnd) {
  for (const std::size_t bytes : {std::size_t{100}, SoftMemory::kLargeBytes + 5}) {
    SoftMemory memory(64);
    std::uint64_t address = 0;
    ASSERT_TRUE(memory.allocate(bytes, &address));
    EXPECT_EQ(address % SoftMemory::kAlignment, 0u);
    char* const begin = reinterpret_cast<char*>(address);
    std::memset(begin, 1, bytes);
    EXPECT_EQ(memory.free(address), Freed::kOk) << "all of it may be written";
    for (const std::ptrdiff_t outside : {std::ptrdiff_t{-1}, static_cast<std::ptrdiff_t>(bytes)}) {
      ASSERT_TRUE(memory.allocate(bytes, &address));
      reinterpret_cast<char*>(address)[outside] = 1;
      EXPECT_EQ(memory.free(address), Freed::kDamaged) << outside;
    }
    EXPECT_EQ(memory.count(), 0u);
  }
}

TEST(SoftMemory, EachDeviceHasItsOwnLimitAndItsOwnBlocks) {
  SoftMemory memory(0, 1000);
  std::uint64_t address = 0, other = 0;
  ASSERT_TRUE(memory.allocate(600, &address, 0));
  EXPECT_FALSE(memory.allocate(401, &other, 0));
  EXPECT_FALSE(memory.allocate(1001, &other, 1));
  ASSERT_TRUE(memory.allocate(1000, &other, 1));
  EXPECT_EQ(memory.free_all(1), 1u);
  EXPECT_EQ(memory.total(), 600u);
  EXPECT_EQ(memory.free(address), Freed::kOk);
  EXPECT_TRUE(memory.allocate(1000, &address, 0)) << "freed bytes count again";
}

TEST(SoftMemoryRace, AllocatesAndFreesFromSeveralThreads) {
  SoftMemory memory;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&memory, t] {
      for (int i = 0; i < 300; ++i) {
        std::uint64_t address = 0;
        std::size_t room = 0;
        EXPECT_TRUE(memory.allocate(64 + 1000 * t, &address));
        EXPECT_TRUE(memory.find(address, &room));
        EXPECT_EQ(memory.free(address), Freed::kOk);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory.count(), 0u);
}

}  // namespace
}  // namespace simpler::driver
