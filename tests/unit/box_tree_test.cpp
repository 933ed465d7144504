// The tree of boxes: what a search returns, that its bounds hold, and how much of it a search looks at.
#include "graph/box_tree.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "unit/support/seed.h"

namespace simpler::graph {
namespace {

Box box_of(std::uint32_t ndims, const std::vector<std::uint32_t>& lo, const std::vector<std::uint32_t>& hi) {
  Box box{};
  for (std::uint32_t d = 0; d < ndims; ++d) {
    box.lo[d] = lo[d];
    box.hi[d] = hi[d];
  }
  return box;
}

bool share(const Box& a, const Box& b, std::uint32_t ndims) {
  for (std::uint32_t d = 0; d < ndims; ++d) {
    if (std::max(a.lo[d], b.lo[d]) >= std::min(a.hi[d], b.hi[d])) return false;
  }
  return true;
}

// A tree with a list of what is in it.
class Forest {
 public:
  explicit Forest(std::uint32_t ndims) : ndims_(ndims) {}
  ~Forest() { tree_.release_all(pool_); }

  std::uint32_t insert(const Box& box) {
    const std::uint32_t value = static_cast<std::uint32_t>(boxes_.size());
    boxes_.push_back(box);
    leaves_.push_back(BoxTree::kNone);
    present_.insert(value);
    tree_.insert(pool_, ndims_, box, value, [this](std::uint32_t v, std::uint32_t leaf) { leaves_[v] = leaf; });
    return value;
  }
  void erase(std::uint32_t value) {
    tree_.erase(pool_, ndims_, leaves_[value], value);
    present_.erase(value);
  }

  std::vector<std::uint32_t> found(const Box& query) const {
    std::vector<std::uint32_t> values;
    tree_.search(pool_, ndims_, query, [&](std::uint32_t value) { values.push_back(value); });
    std::sort(values.begin(), values.end());
    return values;
  }
  std::vector<std::uint32_t> expected(const Box& query) const {
    std::vector<std::uint32_t> values;
    for (std::uint32_t value : present_) {
      if (share(boxes_[value], query, ndims_)) values.push_back(value);
    }
    return values;
  }

  // How many boxes a search compares with its query: all of each node that it enters.
  std::size_t compared(const Box& query) const { return present_.empty() ? 0 : compared_below(root(), query); }

  // Whether every node's bounds, as its parent keeps them, hold all that is below, and all links are right.
  void check() const {
    std::size_t values = 0;
    if (!present_.empty()) check_below(root(), BoxTree::kNone, &values);
    EXPECT_EQ(values, present_.size());
    EXPECT_EQ(tree_.empty(), present_.empty());
  }

  const std::set<std::uint32_t>& present() const { return present_; }

 private:
  std::uint32_t root() const {
    std::uint32_t node = leaves_[*present_.begin()];
    while (pool_[node].parent != BoxTree::kNone) node = pool_[node].parent;
    return node;
  }
  Box entry(const BoxTree::Node& node, std::uint32_t i) const {
    Box box{};
    for (std::uint32_t d = 0; d < ndims_; ++d) {
      box.lo[d] = node.lo[d][i];
      box.hi[d] = node.hi[d][i];
    }
    return box;
  }
  std::size_t compared_below(std::uint32_t index, const Box& query) const {
    const BoxTree::Node& node = pool_[index];
    std::size_t count = node.count;
    for (std::uint32_t i = 0; i < node.count && !node.leaf; ++i) {
      if (share(entry(node, i), query, ndims_)) count += compared_below(node.child[i], query);
    }
    return count;
  }
  Box check_below(std::uint32_t index, std::uint32_t parent, std::size_t* values) const {
    const BoxTree::Node& node = pool_[index];
    EXPECT_EQ(node.parent, parent);
    EXPECT_GE(node.count, 1);
    EXPECT_LE(node.count, BoxTree::kFanOut);
    Box all = entry(node, 0);
    for (std::uint32_t i = 0; i < node.count; ++i) {
      const Box kept = entry(node, i);
      Box below = kept;
      if (node.leaf) {
        ++*values;
        EXPECT_EQ(leaves_[node.child[i]], index);
        below = boxes_[node.child[i]];
      } else {
        below = check_below(node.child[i], index, values);
      }
      EXPECT_TRUE(kept.contains(below, ndims_)) << "bounds of child " << i << " of node " << index;
      for (std::uint32_t d = 0; d < ndims_; ++d) {
        all.lo[d] = std::min(all.lo[d], kept.lo[d]);
        all.hi[d] = std::max(all.hi[d], kept.hi[d]);
      }
    }
    return all;
  }

  const std::uint32_t ndims_;
  BoxTree tree_;
  BoxTree::Pool pool_;
  std::vector<Box> boxes_;
  std::vector<std::uint32_t> leaves_;
  std::set<std::uint32_t> present_;
};

TEST(BoxTree, FindsWhatBruteForceFindsUnderRandomInsertionsAndRemovals) {
  test::for_each_seed(25, [](std::uint64_t seed) {
    test::Random random(seed);
    const std::uint32_t ndims = random.number(1, 5);
    const std::uint32_t extent = random.number(2, 60);
    const std::uint32_t widest = random.number(1, extent);
    Forest forest(ndims);
    const auto random_box = [&] {
      Box box{};
      for (std::uint32_t d = 0; d < ndims; ++d) {
        box.lo[d] = random.number(0, extent - 1);
        box.hi[d] = std::min(extent, box.lo[d] + random.number(1, widest));
      }
      return box;
    };
    for (int step = 0; step < 1200; ++step) {
      const bool shrinking = step / 300 % 2 == 1;  // so that whole nodes come and go
      if (forest.present().empty() || random.chance(shrinking ? 35 : 75)) {
        forest.insert(random_box());
      } else {
        auto victim = forest.present().begin();
        std::advance(victim,
                     random.chance(50) ? 0 : random.number(0, static_cast<std::uint32_t>(forest.present().size()) - 1));
        forest.erase(*victim);
      }
      const Box query = random_box();
      ASSERT_EQ(forest.found(query), forest.expected(query)) << "step " << step;
      if (step % 50 == 0) {
        forest.check();
        ASSERT_FALSE(testing::Test::HasFailure()) << "step " << step;
      }
    }
  });
}

TEST(BoxTree, KeepsEqualBoxesApart) {
  Forest forest(2);
  const Box box = box_of(2, {1, 1}, {2, 2});
  for (int i = 0; i < 100; ++i) forest.insert(box);
  EXPECT_EQ(forest.found(box).size(), 100u);
  for (std::uint32_t value = 0; value < 100; value += 2) forest.erase(value);
  EXPECT_EQ(forest.found(box), forest.expected(box));
  forest.check();
}

TEST(BoxTree, IsEmptyAfterTheLastRemovalAndUsableAgain) {
  Forest forest(1);
  for (std::uint32_t i = 0; i < 500; ++i) forest.insert(box_of(1, {i}, {i + 1}));
  for (std::uint32_t i = 0; i < 500; ++i) forest.erase(i);
  forest.check();
  EXPECT_TRUE(forest.found(box_of(1, {0}, {1000})).empty());
  forest.insert(box_of(1, {3}, {9}));
  EXPECT_EQ(forest.found(box_of(1, {8}, {10})), std::vector<std::uint32_t>{500});
}

TEST(BoxTree, CoordinatesReachTheEndOfTheirRange) {
  Forest forest(1);
  forest.insert(box_of(1, {INT32_MAX - 1}, {INT32_MAX}));
  forest.insert(box_of(1, {0}, {1}));
  EXPECT_EQ(forest.found(box_of(1, {0}, {INT32_MAX})).size(), 2u);
  EXPECT_EQ(forest.found(box_of(1, {1}, {INT32_MAX - 1})).size(), 0u);
}

// Rows in order open new leaves instead of splitting old ones; every ancestor must learn of them.
TEST(BoxTree, FindsEachOfManyRowsThatContinueEachOther) {
  constexpr std::uint32_t kRows = 5000;
  Forest forest(2);
  for (std::uint32_t r = 0; r < kRows; ++r) {
    forest.insert(box_of(2, {r, 0}, {r + 1, 16}));
    const std::uint32_t earlier = r * 7919u % (r + 1);
    ASSERT_EQ(forest.found(box_of(2, {earlier, 3}, {earlier + 1, 4})), std::vector<std::uint32_t>{earlier})
        << "after row " << r;
    ASSERT_EQ(forest.found(box_of(2, {r, 0}, {r + 1, 1})), std::vector<std::uint32_t>{r});
  }
}

// The shapes in which programs cut a matrix. 4096 disjoint pieces; a scan would compare 4096.
struct Cut {
  std::string name;
  std::uint32_t rows, columns;  // of pieces
};

class BoxTreeCost : public testing::TestWithParam<std::tuple<Cut, std::string>> {};

TEST_P(BoxTreeCost, OneOf4096DisjointPiecesIsFoundWithoutLookingAtTheOthers) {
  const auto& [cut, order] = GetParam();
  std::vector<Box> pieces;
  for (std::uint32_t r = 0; r < cut.rows; ++r) {
    for (std::uint32_t c = 0; c < cut.columns; ++c)
      pieces.push_back(box_of(2, {r * 16, c * 16}, {r * 16 + 16, c * 16 + 16}));
  }
  test::Random random(7);
  if (order == "backward") std::reverse(pieces.begin(), pieces.end());
  if (order == "random") random.shuffle(pieces);
  Forest forest(2);
  for (const Box& piece : pieces) forest.insert(piece);
  forest.check();
  std::size_t total = 0, most = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    ASSERT_EQ(forest.found(pieces[i]), std::vector<std::uint32_t>{static_cast<std::uint32_t>(i)});
    const std::size_t compared = forest.compared(pieces[i]);
    total += compared;
    most = std::max(most, compared);
  }
  // Three to five levels of 16 are 48 to 80 comparisons if no bounds overlap.
  EXPECT_LE(total / pieces.size(), 160u) << "on average";
  EXPECT_LE(most, 640u) << "at worst";
}

INSTANTIATE_TEST_SUITE_P(Pieces, BoxTreeCost,
                         testing::Combine(testing::Values(Cut{"Tiles", 64, 64}, Cut{"RowStrips", 4096, 1},
                                                          Cut{"ColumnStrips", 1, 4096}, Cut{"WideTiles", 512, 8}),
                                          testing::Values("forward", "backward", "random")),
                         [](const auto& info) { return std::get<0>(info.param).name + "_" + std::get<1>(info.param); });

TEST(BoxTreeCost, AStreamThatRetiresInOrderKeepsItsSearchesShort) {
  Forest forest(1);
  for (std::uint32_t i = 0; i < 20000; ++i) {
    forest.insert(box_of(1, {i}, {i + 1}));
    if (i >= 1000) forest.erase(i - 1000);
    if (i % 500 == 499) {
      EXPECT_LE(forest.compared(box_of(1, {i}, {i + 1})), 160u) << "after " << i;
    }
  }
  forest.check();
}

}  // namespace
}  // namespace simpler::graph
