// BoxTree: an R-tree of boxes in up to five dimensions (Guttman, "R-trees", SIGMOD 1984), for "which boxes meet this one".
//
// What      Leaves hold (box, value) pairs; inner nodes the bounds of their children. Up to 16 boxes the tree is one leaf.
//           Insertion goes where the bounds grow least. A full node is split at the median of the axis along which its
//           boxes spread most, except that a box which continues the one inserted before it opens a new leaf: programs
//           write their tiles in order, and leaves then end up full. Removal does not shrink bounds: an emptied node
//           disappears, which is what writes that retire in order of insertion need.
// Limits    Coordinates below 2^31.
// Threads   One; nodes come from a pool that all trees of one map share.
// Cost      Logarithmic for boxes that do not overlap each other, in any order of insertion; a node is compared as a whole.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "graph/region.h"

namespace simpler::graph {

class BoxTree {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  static constexpr std::uint32_t kFanOut = 16;

  struct Node {
    std::uint32_t parent;
    std::uint16_t count;
    std::uint8_t position;  // in the parent
    bool leaf;
    std::uint32_t child[kFanOut];  // nodes, or values in a leaf
    std::int32_t lo[MAX_TENSOR_DIMS][kFanOut];
    std::int32_t hi[MAX_TENSOR_DIMS][kFanOut];
  };

  class Pool {
   public:
    std::uint32_t allocate(bool leaf) {
      std::uint32_t index;
      if (free_.empty()) {
        index = static_cast<std::uint32_t>(nodes_.size());
        nodes_.emplace_back();
      } else {
        index = free_.back();
        free_.pop_back();
      }
      nodes_[index].parent = kNone;
      nodes_[index].count = 0;
      nodes_[index].position = 0;
      nodes_[index].leaf = leaf;
      return index;
    }
    void release(std::uint32_t index) { free_.push_back(index); }
    Node& operator[](std::uint32_t index) { return nodes_[index]; }
    const Node& operator[](std::uint32_t index) const { return nodes_[index]; }

   private:
    std::vector<Node> nodes_;
    std::vector<std::uint32_t> free_;
  };

  bool empty() const { return root_ == kNone; }

  // `moved(value, leaf)` is called for each value whose leaf changes, the new one included; erase() wants the leaf back.
  template <typename Moved>
  void insert(Pool& pool, std::uint32_t ndims, const Box& box, std::uint32_t value, Moved moved) {
    if (root_ == kNone) root_ = pool.allocate(true);
    const bool continues = last_leaf_ != kNone && continues_last(ndims, box);
    std::uint32_t leaf = continues ? last_leaf_ : root_;
    while (!pool[leaf].leaf) leaf = pool[leaf].child[cheapest_child(pool[leaf], ndims, box)];
    if (pool[leaf].count == kFanOut)
      leaf = continues ? open_leaf(pool, leaf, ndims, box) : split(pool, leaf, ndims, box, moved);
    append(pool[leaf], ndims, box, value);
    widen_ancestors(pool, leaf, ndims, box);
    last_leaf_ = leaf;
    last_box_ = box;
    moved(value, leaf);
  }

  void erase(Pool& pool, std::uint32_t ndims, std::uint32_t leaf, std::uint32_t value) {
    const Node& node = pool[leaf];
    for (std::uint32_t i = 0; i < node.count; ++i) {
      if (node.child[i] != value) continue;
      remove_child(pool, leaf, ndims, i);
      return;
    }
  }

  // Calls visit(value) for each box that meets `box`. The tree must not change meanwhile.
  template <typename Visit> void search(const Pool& pool, std::uint32_t ndims, const Box& box, Visit visit) const {
    if (root_ != kNone) search_node(pool, root_, ndims, box, visit);
  }

  void release_all(Pool& pool) {
    if (root_ != kNone) release_node(pool, root_);
    root_ = last_leaf_ = kNone;
  }

 private:
  // Bit i: child i meets the box.
  static std::uint32_t meeting(const Node& node, std::uint32_t ndims, const Box& box) {
    const std::uint32_t used = (1u << node.count) - 1;
#if defined(__SSE2__)
    std::uint32_t result = 0;
    for (std::uint32_t i = 0; i < node.count; i += 4) {
      __m128i hit = _mm_set1_epi32(-1);
      for (std::uint32_t d = 0; d < ndims; ++d) {
        const __m128i lo = _mm_loadu_si128(reinterpret_cast<const __m128i*>(&node.lo[d][i]));
        const __m128i hi = _mm_loadu_si128(reinterpret_cast<const __m128i*>(&node.hi[d][i]));
        hit = _mm_and_si128(hit, _mm_cmpgt_epi32(_mm_set1_epi32(static_cast<std::int32_t>(box.hi[d])), lo));
        hit = _mm_and_si128(hit, _mm_cmpgt_epi32(hi, _mm_set1_epi32(static_cast<std::int32_t>(box.lo[d]))));
      }
      result |= static_cast<std::uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(hit))) << i;
    }
    return result & used;
#else
    std::uint32_t result = used;
    for (std::uint32_t d = 0; d < ndims; ++d) {
      const std::int32_t lo = static_cast<std::int32_t>(box.lo[d]), hi = static_cast<std::int32_t>(box.hi[d]);
      std::uint32_t hits = 0;
      for (std::uint32_t i = 0; i < kFanOut; ++i) {
        hits |= static_cast<std::uint32_t>((node.lo[d][i] < hi) & (lo < node.hi[d][i])) << i;
      }
      result &= hits;
    }
    return result;
#endif
  }

  template <typename Visit>
  static void search_node(const Pool& pool, std::uint32_t index, std::uint32_t ndims, const Box& box, Visit& visit) {
    const Node& node = pool[index];
    for (std::uint32_t hits = meeting(node, ndims, box); hits != 0; hits &= hits - 1) {
      const std::uint32_t child = node.child[__builtin_ctz(hits)];
      if (node.leaf) {
        visit(child);
      } else {
        search_node(pool, child, ndims, box, visit);
      }
    }
  }

  // The box begins where the last one ended in one dimension, and is like it in the others.
  bool continues_last(std::uint32_t ndims, const Box& box) const {
    std::uint32_t differing = 0;
    for (std::uint32_t d = 0; d < ndims; ++d) {
      if (box.lo[d] == last_box_.lo[d] && box.hi[d] == last_box_.hi[d]) continue;
      if (box.lo[d] != last_box_.hi[d]) return false;
      ++differing;
    }
    return differing == 1;
  }

  static void set(Node& node, std::uint32_t i, std::uint32_t ndims, const Box& box) {
    for (std::uint32_t d = 0; d < ndims; ++d) {
      node.lo[d][i] = static_cast<std::int32_t>(box.lo[d]);
      node.hi[d][i] = static_cast<std::int32_t>(box.hi[d]);
    }
  }
  static void append(Node& node, std::uint32_t ndims, const Box& box, std::uint32_t child) {
    const std::uint32_t i = node.count++;
    node.child[i] = child;
    set(node, i, ndims, box);
  }
  static void append_node(Pool& pool, std::uint32_t parent, std::uint32_t ndims, const Box& box, std::uint32_t child) {
    pool[child].parent = parent;
    pool[child].position = static_cast<std::uint8_t>(pool[parent].count);
    append(pool[parent], ndims, box, child);
  }

  static void widen_ancestors(Pool& pool, std::uint32_t index, std::uint32_t ndims, const Box& box) {
    for (std::uint32_t parent = pool[index].parent; parent != kNone; index = parent, parent = pool[index].parent) {
      Node& node = pool[parent];
      const std::uint32_t i = pool[index].position;
      bool grown = false;
      for (std::uint32_t d = 0; d < ndims; ++d) {
        const std::int32_t lo = static_cast<std::int32_t>(box.lo[d]), hi = static_cast<std::int32_t>(box.hi[d]);
        grown = grown || lo < node.lo[d][i] || hi > node.hi[d][i];
        node.lo[d][i] = std::min(node.lo[d][i], lo);
        node.hi[d][i] = std::max(node.hi[d][i], hi);
      }
      if (!grown) return;
    }
  }

  // Growth and size are measured by the sum of the sides: cheaper than volumes, and no overflow.
  static std::uint32_t cheapest_child(const Node& node, std::uint32_t ndims, const Box& box) {
    std::uint32_t best = 0;
    std::int64_t best_growth = INT64_MAX, best_size = INT64_MAX;
    for (std::uint32_t i = 0; i < node.count; ++i) {
      std::int64_t growth = 0, size = 0;
      for (std::uint32_t d = 0; d < ndims; ++d) {
        const std::int64_t lo = node.lo[d][i], hi = node.hi[d][i], from = box.lo[d], to = box.hi[d];
        size += hi - lo;
        growth += std::max<std::int64_t>(lo - from, 0) + std::max<std::int64_t>(to - hi, 0);
      }
      if (growth < best_growth || (growth == best_growth && size < best_size)) {
        best = i;
        best_growth = growth;
        best_size = size;
      }
    }
    return best;
  }

  static Box bounds(const Node& node, std::uint32_t ndims) {
    Box box{};
    for (std::uint32_t d = 0; d < ndims; ++d) {
      box.lo[d] = static_cast<std::uint32_t>(*std::min_element(node.lo[d], node.lo[d] + node.count));
      box.hi[d] = static_cast<std::uint32_t>(*std::max_element(node.hi[d], node.hi[d] + node.count));
    }
    return box;
  }

  // The parent of `node`, with room for one more child.
  template <typename Moved>
  std::uint32_t parent_with_room(Pool& pool, std::uint32_t node, std::uint32_t ndims, const Box& box, Moved& moved) {
    if (pool[node].parent == kNone) {
      const std::uint32_t root = pool.allocate(false);
      append_node(pool, root, ndims, bounds(pool[node], ndims), node);
      root_ = root;
    } else if (pool[pool[node].parent].count == kFanOut) {
      split(pool, pool[node].parent, ndims, box,
            moved);  // `node` may have moved to the new half: its parent link is right
    }
    return pool[node].parent;
  }

  // A new, empty leaf beside a full one, for a box that continues it.
  std::uint32_t open_leaf(Pool& pool, std::uint32_t full, std::uint32_t ndims, const Box& box) {
    const auto unmoved = [](std::uint32_t, std::uint32_t) {};  // splitting inner nodes moves no values
    const std::uint32_t parent = parent_with_room(pool, full, ndims, box, unmoved);
    const std::uint32_t leaf = pool.allocate(true);
    append_node(pool, parent, ndims, box, leaf);
    widen_ancestors(pool, parent, ndims, box);
    return leaf;
  }

  // Splits a full node in two and returns the half that should take `box`.
  template <typename Moved>
  std::uint32_t split(Pool& pool, std::uint32_t full, std::uint32_t ndims, const Box& box, Moved& moved) {
    const std::uint32_t parent = parent_with_room(pool, full, ndims, box, moved);
    const std::uint32_t sibling = pool.allocate(pool[full].leaf);
    const Node before = pool[full];
    std::uint32_t axis = 0;
    std::int64_t widest = -1;
    for (std::uint32_t d = 0; d < ndims; ++d) {
      const auto [low, high] = std::minmax_element(before.lo[d], before.lo[d] + kFanOut);
      if (std::int64_t{*high} - *low > widest) {
        widest = std::int64_t{*high} - *low;
        axis = d;
      }
    }
    std::uint32_t order[kFanOut];
    for (std::uint32_t i = 0; i < kFanOut; ++i) order[i] = i;
    std::stable_sort(order, order + kFanOut,
                     [&](std::uint32_t a, std::uint32_t b) { return before.lo[axis][a] < before.lo[axis][b]; });

    pool[full].count = 0;
    for (std::uint32_t k = 0; k < kFanOut; ++k) {
      const std::uint32_t i = order[k], child = before.child[i], half = k < kFanOut / 2 ? full : sibling;
      Box part{};
      for (std::uint32_t d = 0; d < ndims; ++d) {
        part.lo[d] = static_cast<std::uint32_t>(before.lo[d][i]);
        part.hi[d] = static_cast<std::uint32_t>(before.hi[d][i]);
      }
      if (!before.leaf) {
        append_node(pool, half, ndims, part, child);
        continue;
      }
      append(pool[half], ndims, part, child);
      if (half == sibling) moved(child, sibling);
    }
    set(pool[parent], pool[full].position, ndims, bounds(pool[full], ndims));
    const Box high = bounds(pool[sibling], ndims);
    append_node(pool, parent, ndims, high, sibling);
    return box.lo[axis] < high.lo[axis] ? full : sibling;
  }

  void remove_child(Pool& pool, std::uint32_t index, std::uint32_t ndims, std::uint32_t i) {
    Node& node = pool[index];
    const std::uint32_t last = --node.count;
    node.child[i] = node.child[last];
    for (std::uint32_t d = 0; d < ndims; ++d) {
      node.lo[d][i] = node.lo[d][last];
      node.hi[d][i] = node.hi[d][last];
    }
    if (!node.leaf && i != last) pool[node.child[i]].position = static_cast<std::uint8_t>(i);
    if (node.count > 0) return;
    const std::uint32_t parent = node.parent, position = node.position;
    pool.release(index);
    if (index == last_leaf_) last_leaf_ = kNone;
    if (parent == kNone) {
      root_ = kNone;
    } else {
      remove_child(pool, parent, ndims, position);
    }
  }

  static void release_node(Pool& pool, std::uint32_t index) {
    if (!pool[index].leaf) {
      for (std::uint32_t i = 0; i < pool[index].count; ++i) release_node(pool, pool[index].child[i]);
    }
    pool.release(index);
  }

  std::uint32_t root_ = kNone;
  std::uint32_t last_leaf_ = kNone;  // where the last box went
  Box last_box_{};
};

}  // namespace simpler::graph
