// Overlap of views, against their bytes counted one by one.
#include "graph/region.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include <gtest/gtest.h>

#include "unit/support/random_view.h"

namespace simpler::graph {
namespace {

using test::bytes_of;
using test::random_view;

alignas(64) char memory[64 * 1024];

ChipTensor matrix(std::uint32_t rows, std::uint32_t columns, DataType type = DataType::INT32) {
  const std::uint32_t shape[] = {rows, columns};
  return make_tensor_external(memory, shape, 2, type);
}
ChipTensor tile(const ChipTensor& tensor, std::uint32_t row, std::uint32_t column, std::uint32_t rows,
                std::uint32_t columns) {
  const std::uint32_t shape[] = {rows, columns}, offset[] = {row, column};
  return tensor.view(shape, offset);
}
Overlap overlap(const ChipTensor& later, const ChipTensor& earlier) {
  return compare(Region::of(later), Region::of(earlier));
}
bool disjoint(const std::set<std::uint64_t>& a, const std::set<std::uint64_t>& b) {
  std::vector<std::uint64_t> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both.empty();
}

TEST(Region, TilesOfOneMatrixAreComparedExactly) {
  const ChipTensor m = matrix(8, 8);
  EXPECT_EQ(overlap(tile(m, 0, 0, 4, 4), tile(m, 0, 4, 4, 4)), Overlap::kNone);
  EXPECT_EQ(overlap(tile(m, 0, 0, 4, 5), tile(m, 0, 4, 4, 4)), Overlap::kSome);
  EXPECT_EQ(overlap(m, tile(m, 2, 2, 4, 4)), Overlap::kCovered);
  EXPECT_EQ(overlap(tile(m, 2, 2, 4, 4), tile(m, 2, 2, 4, 4)), Overlap::kCovered);
  EXPECT_EQ(overlap(tile(m, 2, 2, 4, 4), m), Overlap::kSome);
  EXPECT_EQ(overlap(tile(m, 0, 7, 8, 1), tile(m, 0, 6, 8, 1)), Overlap::kNone) << "column strips";
}

TEST(Region, ViewsOfDifferentLayoutsAreComparedByTheirByteRange) {
  const ChipTensor m = matrix(8, 8);
  const ChipTensor left = tile(m, 0, 0, 8, 4), right = tile(m, 0, 4, 8, 4);
  EXPECT_EQ(overlap(left.transpose(0, 1), right), Overlap::kSome) << "interleaved: nobody compares them exactly";
  EXPECT_EQ(overlap(tile(m, 0, 0, 4, 8).transpose(0, 1), tile(m, 4, 0, 4, 8)), Overlap::kNone);
  EXPECT_EQ(overlap(m.slice(1, 0, 8, 2), m.slice(1, 1, 8, 2)), Overlap::kSome) << "even and odd columns";
  EXPECT_EQ(overlap(m.slice(0, 0, 8, 2), m.slice(0, 1, 8, 2)), Overlap::kNone) << "even and odd rows: boxes of 4 x 16";
}

TEST(Region, AStepBeyondTheEndOfASliceLeavesItsFirstElement) {
  const ChipTensor m = matrix(8, 8);
  for (const std::uint32_t step : {5u, 8u, 0x80000000u, 0xFFFFFFFFu}) {
    const ChipTensor rows = m.slice(0, 3, 8, step);
    EXPECT_EQ(rows.shapes[0], 1u) << step;
    EXPECT_EQ(bytes_of(rows), bytes_of(tile(m, 3, 0, 1, 8))) << step;
  }
}

TEST(Region, AStrideThatDoesNotDivideWhatLiesAroundItMakesNoBox) {
  const ChipTensor odd = matrix(5, 8);  // five rows are no whole number of pairs
  EXPECT_FALSE(Region::of(odd.slice(0, 0, 4, 2)).exact);
  EXPECT_EQ(overlap(odd.slice(0, 0, 4, 2), odd.slice(0, 1, 5, 2)), Overlap::kSome);
  const std::uint32_t shape[] = {2, 3, 4};
  const ChipTensor cube = make_tensor_external(memory, shape, 3, DataType::INT32);
  EXPECT_FALSE(Region::of(cube.slice(1, 0, 1, 2)).exact);
  EXPECT_EQ(overlap(cube.slice(1, 0, 1, 2), cube.slice(1, 1, 2, 2)), Overlap::kSome);
}

TEST(Region, ViewsOfDifferentTypesAreComparedInBytes) {
  const ChipTensor words = matrix(4, 4, DataType::INT64), bytes = matrix(4, 16, DataType::INT8);
  EXPECT_EQ(overlap(tile(words, 2, 0, 1, 4), tile(bytes, 0, 0, 4, 16)), Overlap::kNone) << "bytes 64..96 and 0..64";
  EXPECT_EQ(overlap(tile(words, 1, 0, 1, 4), tile(bytes, 3, 0, 1, 16)), Overlap::kSome) << "bytes 32..64 and 48..64";
}

TEST(Region, ANewerVersionOverlapsWhateverTheBytes) {
  ChipTensor first = tile(matrix(4, 4), 0, 0, 2, 4), second = tile(matrix(4, 4), 2, 0, 2, 4);
  EXPECT_EQ(overlap(second, first), Overlap::kNone);
  second.version = 1;
  EXPECT_EQ(overlap(second, first), Overlap::kSome);
  EXPECT_EQ(overlap(first, second), Overlap::kNone) << "an older version is nothing special";
  ChipTensor whole = matrix(4, 4);
  whole.version = 1;
  EXPECT_EQ(overlap(whole, first), Overlap::kSome) << "not covered: the earlier write stays registered";
}

TEST(Region, AnEmptyViewTouchesNothing) {
  const ChipTensor m = matrix(4, 4);
  EXPECT_TRUE(Region::of(m.slice(0, 2, 2)).empty());
  const std::uint32_t shape[] = {0, 4}, offset[] = {1, 0};
  EXPECT_TRUE(Region::of(m.view(shape, offset)).empty());
  EXPECT_FALSE(Region::of(m).empty());
}

TEST(Region, AColumnOfOneElementRowsHasABox) {
  const std::uint32_t shape[] = {6, 1};
  const ChipTensor column = make_tensor_external(memory, shape, 2, DataType::INT32);
  EXPECT_TRUE(Region::of(column).exact);
  EXPECT_EQ(overlap(column.slice(0, 0, 3), column.slice(0, 3, 6)), Overlap::kNone);
  EXPECT_EQ(overlap(column, column.slice(0, 3, 6)), Overlap::kCovered);
}

TEST(Region, ABoxThatLeavesTheShapeOfItsStridesIsNone) {
  const std::uint32_t shape[] = {3, 4}, strides[] = {3, 1};  // rows overlap each other
  const ChipTensor overlapping = make_tensor_strided(memory, shape, strides, 2, DataType::INT32);
  EXPECT_FALSE(Region::of(overlapping).exact);
}

TEST(Region, LargeTensorsDoNotOverflow) {
  const std::uint32_t shape[] = {1u << 20, 1u << 14};  // 64 GiB: addresses only
  const ChipTensor huge = make_tensor_external(memory, shape, 2, DataType::FLOAT32);
  const ChipTensor last = tile(huge, (1u << 20) - 1, (1u << 14) - 8, 1, 8);
  EXPECT_TRUE(Region::of(last).exact);
  EXPECT_EQ(Region::of(last).end, std::uint64_t{1} << 36);
  EXPECT_EQ(overlap(last, tile(huge, 0, 0, 1 << 19, 1 << 14)), Overlap::kNone);
  EXPECT_EQ(overlap(huge, last), Overlap::kCovered);
  const std::uint32_t flat[] = {1u << 31};
  ChipTensor line = make_tensor_external(memory, flat, 1, DataType::FLOAT32);
  line.buffer.size = std::uint64_t{1} << 36;
  line.start_offset = std::uint64_t{1} << 33;
  EXPECT_EQ(overlap(huge, line), Overlap::kSome) << "by bytes: the line starts beyond 32 bits";
}

// The verdict is never "none" for views that share a byte, "none" is symmetric, "covered" means that no byte is left, and
// views of one layout with boxes are judged exactly.
TEST(Region, VerdictsAgreeWithTheBytesOfRandomViews) {
  test::for_each_seed(400, [](std::uint64_t seed) {
    test::Random random(seed);
    const DataType types[] = {DataType::INT8, DataType::INT16, DataType::INT32, DataType::INT64};
    std::vector<ChipTensor> views;
    for (int base = 0; base < 3; ++base) {
      std::uint32_t shape[MAX_TENSOR_DIMS];
      const std::uint32_t ndims = random.number(1, MAX_TENSOR_DIMS);
      for (std::uint32_t d = 0; d < ndims; ++d) shape[d] = random.number(1, ndims > 3 ? 4 : 8);
      const ChipTensor tensor = make_tensor_external(memory, shape, ndims, types[random.number(0, 3)]);
      for (int i = 0; i < 7; ++i) views.push_back(random_view(random, tensor));
    }
    std::vector<std::set<std::uint64_t>> bytes;
    for (const ChipTensor& view : views) bytes.push_back(bytes_of(view));
    for (std::size_t a = 0; a < views.size(); ++a) {
      const Region later = Region::of(views[a]);
      ASSERT_EQ(later.empty(), bytes[a].empty());
      if (later.empty()) continue;
      ASSERT_EQ(later.begin, *bytes[a].begin());
      ASSERT_EQ(later.end, *bytes[a].rbegin() + 1);
      for (std::size_t b = 0; b < views.size(); ++b) {
        const Region earlier = Region::of(views[b]);
        if (earlier.empty()) continue;
        const Overlap verdict = compare(later, earlier);
        const bool apart = disjoint(bytes[a], bytes[b]);
        const bool covers = std::includes(bytes[a].begin(), bytes[a].end(), bytes[b].begin(), bytes[b].end());
        ASSERT_TRUE(verdict != Overlap::kNone || apart) << a << " and " << b << " share a byte";
        ASSERT_TRUE(verdict != Overlap::kCovered || covers) << a << " does not cover " << b;
        ASSERT_EQ(verdict == Overlap::kNone, compare(earlier, later) == Overlap::kNone) << a << " and " << b;
        if (later.exact && earlier.exact && later.layout == earlier.layout) {
          ASSERT_EQ(verdict, apart ? Overlap::kNone : covers ? Overlap::kCovered : Overlap::kSome) << a << " and " << b;
        } else if (later.begin >= earlier.end || earlier.begin >= later.end) {
          ASSERT_EQ(verdict, Overlap::kNone) << a << " and " << b;
        }
      }
    }
  });
}

// tensor.h is what the verdicts start from: its views against index arithmetic of its own kind.
TEST(TensorViews, NameTheElementsThatTheirIndicesName) {
  const ChipTensor m = matrix(6, 10, DataType::INT8);
  const auto elements = [](const ChipTensor& view) { return bytes_of(view); };
  std::set<std::uint64_t> box, stepped, column;
  for (std::uint64_t r = 1; r < 4; ++r) {
    for (std::uint64_t c = 2; c < 7; ++c) box.insert(r * 10 + c);
  }
  for (std::uint64_t r = 1; r < 6; r += 2) {
    for (std::uint64_t c = 0; c < 10; ++c) stepped.insert(r * 10 + c);
  }
  for (std::uint64_t r = 0; r < 6; ++r) column.insert(r * 10 + 9);
  EXPECT_EQ(elements(tile(m, 1, 2, 3, 5)), box);
  EXPECT_EQ(elements(tile(m, 1, 2, 3, 5).transpose(0, 1)), box);
  EXPECT_EQ(elements(m.slice(0, 1, 6, 2)), stepped);
  EXPECT_EQ(elements(m.slice(1, 9, 10)), column);
  const std::uint32_t index[] = {4, 2}, flat[] = {60};
  EXPECT_EQ(m.transpose(0, 1).compute_flat_offset(index, 2), 2u * 10 + 4);
  EXPECT_EQ(elements(m.reshape(flat, 1)), elements(m));
  EXPECT_FALSE(m.transpose(0, 1).valid_reshape(flat, 1)) << "not row-major any more";
}

TEST(TensorViews, OfAnEmptyViewAreEmpty) {
  const ChipTensor empty = matrix(6, 10).slice(0, 3, 3);
  const std::uint32_t order[] = {1, 0};
  for (const ChipTensor& view :
       {empty.transpose(0, 1), empty.permute(order), empty.slice(1, 2, 5), empty.slice(0, 0, 0)}) {
    EXPECT_EQ(view.numel(), 0u);
    EXPECT_EQ(view.extent_elem(), 0u);
    EXPECT_TRUE(Region::of(view).empty());
  }
}

}  // namespace
}  // namespace simpler::graph
