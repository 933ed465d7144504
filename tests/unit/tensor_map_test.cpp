// The table of live writes: it finds what a scan over all of them finds, whatever came and went before.
#include "graph/tensor_map.h"

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "unit/support/random_view.h"

namespace simpler::graph {
namespace {

alignas(64) char buffers[6][8 * 1024];

PTO2TaskId id_of(std::uint32_t task) { return PTO2TaskId::make(0, task); }
ChipTensor vector_of(char* memory, std::uint32_t elements) {
  return make_tensor_external(memory, &elements, 1, DataType::INT32);
}

TensorMap::Access access_to(TensorMap& map, const ChipTensor& tensor) {
  TensorMap::Access access;
  map.begin_access(tensor, access);
  return access;
}
void insert(TensorMap& map, const ChipTensor& tensor, std::uint32_t task, std::uint32_t* first_writer) {
  TensorMap::Access access = access_to(map, tensor);
  map.insert(access, id_of(task), first_writer);
}

std::vector<std::uint32_t> producers(TensorMap& map, const ChipTensor& tensor) {
  std::vector<std::uint32_t> found;
  TensorMap::Access access = access_to(map, tensor);
  map.find(access, [&](PTO2TaskId producer, std::uint32_t, Overlap) { found.push_back(producer.local()); });
  std::sort(found.begin(), found.end());
  return found;
}

TEST(TensorMap, KeepsBuffersApart) {
  TensorMap map;
  std::uint32_t entries = TensorMap::kNone;
  insert(map, vector_of(buffers[0], 8), 1, &entries);
  EXPECT_EQ(producers(map, vector_of(buffers[0], 8)), std::vector<std::uint32_t>{1});
  EXPECT_TRUE(producers(map, vector_of(buffers[1], 8)).empty());
  EXPECT_TRUE(producers(map, vector_of(buffers[0] + 4, 8)).empty()) << "buffers are told apart by their base";
}

TEST(TensorMap, DropsAllEntriesOfATaskAtOnce) {
  TensorMap map;
  std::uint32_t first = TensorMap::kNone, second = TensorMap::kNone;
  for (char* buffer : {buffers[0], buffers[1], buffers[2]}) insert(map, vector_of(buffer, 8), 1, &first);
  insert(map, vector_of(buffers[0], 8), 2, &second);
  EXPECT_EQ(map.live(), 4u);
  map.drop(first);
  EXPECT_EQ(map.live(), 1u);
  EXPECT_EQ(producers(map, vector_of(buffers[0], 8)), std::vector<std::uint32_t>{2});
  EXPECT_TRUE(producers(map, vector_of(buffers[1], 8)).empty());
}

TEST(TensorMap, RemovesOneEntryOnceAndLetsItsTaskGoLater) {
  TensorMap map;
  std::uint32_t entries = TensorMap::kNone, found = TensorMap::kNone;
  const ChipTensor tensor = vector_of(buffers[0], 8);
  insert(map, tensor, 1, &entries);
  TensorMap::Access access = access_to(map, tensor);
  map.find(access, [&](PTO2TaskId, std::uint32_t entry, Overlap overlap) {
    EXPECT_EQ(overlap, Overlap::kCovered);
    found = entry;
  });
  std::uint32_t later = TensorMap::kNone;
  insert(map, tensor, 2, &later);
  map.remove(found);
  map.remove(found);
  EXPECT_EQ(map.live(), 1u);
  EXPECT_EQ(producers(map, tensor), std::vector<std::uint32_t>{2});
  map.drop(entries);
  EXPECT_EQ(map.live(), 1u);
  map.drop(later);
  EXPECT_EQ(map.live(), 0u);
}

TEST(TensorMap, RegistersNoEmptyRegionAndFindsNothingForOne) {
  TensorMap map;
  std::uint32_t entries = TensorMap::kNone;
  const ChipTensor tensor = vector_of(buffers[0], 8);
  insert(map, tensor.slice(0, 4, 4), 1, &entries);
  EXPECT_EQ(entries, TensorMap::kNone);
  EXPECT_EQ(map.live(), 0u);
  insert(map, tensor, 2, &entries);
  EXPECT_TRUE(producers(map, tensor.slice(0, 4, 4)).empty());
}

TEST(TensorMap, HasRoomForAsManyEntriesAsItPromises) {
  TensorMap map;
  std::uint32_t entries = TensorMap::kNone;
  const ChipTensor tensor = vector_of(buffers[0], 1024);
  for (std::uint32_t i = 0; i < TensorMap::kCapacity; ++i) {
    ASSERT_TRUE(map.room_for(1));
    insert(map, tensor.slice(0, i % 1024, i % 1024 + 1), i, &entries);
  }
  EXPECT_FALSE(map.room_for(1));
  EXPECT_TRUE(map.room_for(0));
  map.drop(entries);
  EXPECT_TRUE(map.room_for(TensorMap::kCapacity));
}

TEST(TensorMap, ForgetsEverythingWhenCleared) {
  TensorMap map;
  for (int round = 0; round < 3; ++round) {
    std::uint32_t entries = TensorMap::kNone;
    for (std::uint32_t i = 0; i < 200; ++i) {
      insert(map, vector_of(buffers[i % 6], 2000).slice(0, i, i + 1), i, &entries);
    }
    EXPECT_EQ(map.live(), 200u);
    map.clear();
    EXPECT_EQ(map.live(), 0u);
    EXPECT_TRUE(producers(map, vector_of(buffers[0], 2000)).empty());
  }
}

TEST(TensorMap, ServesThousandsOfBuffersAtOnce) {
  TensorMap map;
  std::vector<std::uint32_t> entries(10000, TensorMap::kNone);
  const auto tensor = [](std::uint32_t i) {
    return vector_of(reinterpret_cast<char*>(std::uintptr_t{4096} * (i + 1)), 4);
  };
  for (std::uint32_t i = 0; i < entries.size(); ++i) insert(map, tensor(i), i, &entries[i]);
  for (std::uint32_t i = 0; i < entries.size(); i += 2) map.drop(entries[i]);
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    ASSERT_EQ(producers(map, tensor(i)).size(), i % 2) << i;
  }
}

// Places that had a writer once would otherwise pile up, and be met by every search.
TEST(TensorMap, KeepsIdlePlacesButNotInTheWayOfSearches) {
  TensorMap map;
  const ChipTensor whole = vector_of(buffers[0], 1000);
  std::vector<std::uint32_t> writers(1000, TensorMap::kNone);
  for (std::uint32_t i = 0; i < writers.size(); ++i) insert(map, whole.slice(0, i, i + 1), i, &writers[i]);
  for (std::uint32_t i = 1; i < writers.size(); ++i) map.drop(writers[i]);
  EXPECT_EQ(producers(map, whole.slice(0, 0, 1)), std::vector<std::uint32_t>{0});
  map.tidy();
  EXPECT_EQ(map.places(), 1000u);
  EXPECT_EQ(producers(map, whole), std::vector<std::uint32_t>{0});
  map.tidy();
  EXPECT_EQ(map.places(), 1u);
}

TEST(TensorMap, KeepsNoMoreIdlePlacesThanItPromises) {
  TensorMap map;
  const ChipTensor whole = vector_of(buffers[0], 2048);
  for (std::uint32_t i = 0; i < 4 * TensorMap::kIdlePlaces; ++i) {
    std::uint32_t writer = TensorMap::kNone;
    map.tidy();
    insert(map, whole.slice(0, i % 2048, i % 2048 + 1).slice(0, 0, 1), i, &writer);
    insert(map, whole.slice(0, i / 8 % 2048, std::min(2048u, i / 8 % 2048 + 2 + i % 8)), i, &writer);
    map.drop(writer);
    ASSERT_LE(map.places(), TensorMap::kIdlePlaces + 2);
  }
  map.clear();
  EXPECT_EQ(map.places(), 0u);
}

TEST(TensorMap, FindsWhatAScanFindsWhileTasksComeCoverAndGo) {
  test::for_each_seed(60, [](std::uint64_t seed) {
    test::Random random(seed);
    const DataType types[] = {DataType::INT8, DataType::INT16, DataType::INT32, DataType::INT64};
    std::vector<ChipTensor> bases;  // several shapes and types over the same few buffers
    for (int i = 0; i < 6; ++i) {
      std::uint32_t shape[MAX_TENSOR_DIMS];
      const std::uint32_t ndims = random.number(1, 4);
      for (std::uint32_t d = 0; d < ndims; ++d) shape[d] = random.number(1, 8);
      bases.push_back(make_tensor_external(buffers[random.number(0, 2)], shape, ndims, types[random.number(0, 3)]));
      if (random.chance(15)) bases.back().version = 1;
    }
    struct Write {
      Region region;
      std::uint32_t task;
    };
    std::vector<ChipTensor> favourites;  // most accesses come back to a few views
    for (int i = 0; i < 24; ++i) favourites.push_back(random_view(random, random.pick(bases)));
    TensorMap map;
    std::map<std::uint32_t, Write> scan;                   // by entry
    std::map<std::uint32_t, std::uint32_t> first_of_task;  // live tasks
    for (std::uint32_t task = 0; task < 250; ++task) {
      const ChipTensor tensor = random.chance(80) ? random.pick(favourites) : random_view(random, random.pick(bases));
      const Region region = Region::of(tensor);
      if (random.chance(50)) map.tidy();
      TensorMap::Access access = access_to(map, tensor);
      std::uint32_t first = TensorMap::kNone;
      if (random.chance(20)) {  // written without looking
        insert(map, tensor, task, &first);
        if (first != TensorMap::kNone) {
          ASSERT_FALSE(scan.count(first)) << "entry " << first << " is still in use";
          scan[first] = {region, task};
          first_of_task[task] = first;
        }
        continue;
      }
      std::map<std::uint32_t, Overlap> expected, found;
      for (const auto& [entry, write] : scan) {
        if (write.region.buffer != region.buffer || region.empty()) continue;
        const Overlap overlap = compare(region, write.region);
        if (overlap != Overlap::kNone) expected[entry] = overlap;
      }
      map.find(access, [&](PTO2TaskId producer, std::uint32_t entry, Overlap overlap) {
        EXPECT_TRUE(found.emplace(entry, overlap).second) << "entry " << entry << " was found twice";
        ASSERT_TRUE(scan.count(entry)) << "entry " << entry << " is gone";
        EXPECT_EQ(producer.local(), scan[entry].task);
      });
      ASSERT_EQ(found, expected) << "task " << task;

      if (random.chance(50)) {
        for (const auto& [entry, overlap] : found) {
          if (overlap != Overlap::kCovered) continue;
          map.remove(entry);
          scan.erase(entry);
        }
      }
      map.insert(access, id_of(task), &first);
      if (first != TensorMap::kNone) {
        ASSERT_FALSE(scan.count(first)) << "entry " << first << " is still in use";
        scan[first] = {region, task};
        first_of_task[task] = first;
      }
      while (first_of_task.size() > 40 || (!first_of_task.empty() && random.chance(30))) {
        const auto oldest = first_of_task.begin();
        map.drop(oldest->second);
        if (scan.count(oldest->second) && scan[oldest->second].task == oldest->first) scan.erase(oldest->second);
        first_of_task.erase(oldest);
      }
      ASSERT_EQ(map.live(), scan.size()) << "task " << task;
    }
  });
}

}  // namespace
}  // namespace simpler::graph
