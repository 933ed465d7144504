// BoxTree: an R-tree of boxes in up to five dimensions (Guttman, "R-trees", SIGMOD 1984), for "which boxes meet this one".
//
// What      Leaves hold (box, value) pairs; inner nodes the bounds of their children. Up to 16 boxes the tree is one leaf,
//           that is a linear scan over packed coordinates. Insertion goes where the bounds grow least; a full node is
//           split at the median of the axis along which its boxes spread most. Removal does not shrink bounds: an emptied
//           node disappears, which is what writes that retire in order of insertion need.
// Threads   One; nodes come from a pool that all trees of one map share.
// Cost      Logarithmic for boxes that do not overlap each other, in any order of insertion.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "graph/region.h"

namespace simpler::graph {

class BoxTree {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  static constexpr std::uint32_t kFanOut = 16;

  struct Node {
    std::uint32_t parent;
    std::uint16_t count;
    bool leaf;
    std::uint32_t child[kFanOut];  // nodes, or values in a leaf
    std::uint32_t lo[MAX_TENSOR_DIMS][kFanOut];
    std::uint32_t hi[MAX_TENSOR_DIMS][kFanOut];
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
    std::uint32_t node = root_;
    while (!pool[node].leaf) {
      const std::uint32_t at = cheapest_child(pool[node], ndims, box);
      widen(pool[node], at, ndims, box);
      node = pool[node].child[at];
    }
    if (pool[node].count == kFanOut) node = split(pool, node, ndims, box, moved);
    append(pool[node], ndims, box, value);
    moved(value, node);
  }

  void erase(Pool& pool, std::uint32_t ndims, std::uint32_t leaf, std::uint32_t value) {
    remove_child(pool, leaf, ndims, value);
  }

  // Calls visit(value) for each box that meets `box`. The tree must not change meanwhile.
  template <typename Visit>
  void search(const Pool& pool, std::uint32_t ndims, const Box& box, Visit visit) const {
    if (root_ != kNone) search_node(pool, root_, ndims, box, visit);
  }

  void release_all(Pool& pool) {
    if (root_ != kNone) release_node(pool, root_);
    root_ = kNone;
  }

 private:
  static bool meets(const Node& node, std::uint32_t i, std::uint32_t ndims, const Box& box) {
    bool result = true;
    for (std::uint32_t d = 0; d < ndims; ++d) result = result && node.lo[d][i] < box.hi[d] && box.lo[d] < node.hi[d][i];
    return result;
  }

  template <typename Visit>
  static void search_node(const Pool& pool, std::uint32_t index, std::uint32_t ndims, const Box& box, Visit& visit) {
    const Node& node = pool[index];
    for (std::uint32_t i = 0; i < node.count; ++i) {
      if (!meets(node, i, ndims, box)) continue;
      if (node.leaf) {
        visit(node.child[i]);
      } else {
        search_node(pool, node.child[i], ndims, box, visit);
      }
    }
  }

  static void append(Node& node, std::uint32_t ndims, const Box& box, std::uint32_t child) {
    const std::uint32_t i = node.count++;
    node.child[i] = child;
    for (std::uint32_t d = 0; d < ndims; ++d) {
      node.lo[d][i] = box.lo[d];
      node.hi[d][i] = box.hi[d];
    }
  }

  static void widen(Node& node, std::uint32_t i, std::uint32_t ndims, const Box& box) {
    for (std::uint32_t d = 0; d < ndims; ++d) {
      node.lo[d][i] = std::min(node.lo[d][i], box.lo[d]);
      node.hi[d][i] = std::max(node.hi[d][i], box.hi[d]);
    }
  }

  // Growth and size are measured by the sum of the sides: cheaper than volumes, and no overflow.
  static std::uint32_t cheapest_child(const Node& node, std::uint32_t ndims, const Box& box) {
    std::uint32_t best = 0;
    std::uint64_t best_growth = UINT64_MAX, best_size = UINT64_MAX;
    for (std::uint32_t i = 0; i < node.count; ++i) {
      std::uint64_t growth = 0, size = 0;
      for (std::uint32_t d = 0; d < ndims; ++d) {
        const std::uint32_t lo = node.lo[d][i], hi = node.hi[d][i];
        size += hi - lo;
        growth += (box.lo[d] < lo ? lo - box.lo[d] : 0) + (box.hi[d] > hi ? box.hi[d] - hi : 0);
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
    Box box;
    for (std::uint32_t d = 0; d < ndims; ++d) {
      box.lo[d] = *std::min_element(node.lo[d], node.lo[d] + node.count);
      box.hi[d] = *std::max_element(node.hi[d], node.hi[d] + node.count);
    }
    return box;
  }

  // Splits a full node in two and returns the half that should take `box`.
  template <typename Moved>
  std::uint32_t split(Pool& pool, std::uint32_t full, std::uint32_t ndims, const Box& box, Moved& moved) {
    std::uint32_t parent = pool[full].parent;
    if (parent == kNone) {
      parent = pool.allocate(false);
      const Box whole = bounds(pool[full], ndims);
      append(pool[parent], ndims, whole, full);
      pool[full].parent = parent;
      root_ = parent;
    } else if (pool[parent].count == kFanOut) {
      parent = split(pool, parent, ndims, bounds(pool[full], ndims), moved);
      // `full` may have moved to the other half: its parent link is right, and it is the one to extend.
      parent = pool[full].parent;
    }
    const std::uint32_t sibling = pool.allocate(pool[full].leaf);
    Node& from = pool[full];
    Node& to = pool[sibling];
    to.parent = parent;

    std::uint32_t axis = 0;
    std::uint64_t widest = 0;
    for (std::uint32_t d = 0; d < ndims; ++d) {
      const auto [low, high] = std::minmax_element(from.lo[d], from.lo[d] + kFanOut);
      if (std::uint64_t{*high} - *low > widest) {
        widest = std::uint64_t{*high} - *low;
        axis = d;
      }
    }
    std::uint32_t order[kFanOut];
    for (std::uint32_t i = 0; i < kFanOut; ++i) order[i] = i;
    std::stable_sort(order, order + kFanOut,
                     [&](std::uint32_t a, std::uint32_t b) { return from.lo[axis][a] < from.lo[axis][b]; });

    const Node before = from;
    from.count = 0;
    for (std::uint32_t k = 0; k < kFanOut; ++k) {
      Node& half = k < kFanOut / 2 ? from : to;
      const std::uint32_t i = order[k];
      Box part;
      for (std::uint32_t d = 0; d < ndims; ++d) {
        part.lo[d] = before.lo[d][i];
        part.hi[d] = before.hi[d][i];
      }
      append(half, ndims, part, before.child[i]);
      if (&half == &to) {
        if (to.leaf) {
          moved(before.child[i], sibling);
        } else {
          pool[before.child[i]].parent = sibling;
        }
      }
    }

    const Box low = bounds(pool[full], ndims), high = bounds(pool[sibling], ndims);
    Node& above = pool[parent];
    for (std::uint32_t i = 0; i < above.count; ++i) {
      if (above.child[i] != full) continue;
      for (std::uint32_t d = 0; d < ndims; ++d) {
        above.lo[d][i] = low.lo[d];
        above.hi[d][i] = low.hi[d];
      }
    }
    append(above, ndims, high, sibling);
    const std::uint32_t chosen = box.lo[axis] < high.lo[axis] ? full : sibling;
    for (std::uint32_t i = 0; i < above.count; ++i) {
      if (above.child[i] == chosen) widen(above, i, ndims, box);
    }
    return chosen;
  }

  void remove_child(Pool& pool, std::uint32_t index, std::uint32_t ndims, std::uint32_t child) {
    Node& node = pool[index];
    for (std::uint32_t i = 0; i < node.count; ++i) {
      if (node.child[i] != child) continue;
      const std::uint32_t last = --node.count;
      node.child[i] = node.child[last];
      for (std::uint32_t d = 0; d < ndims; ++d) {
        node.lo[d][i] = node.lo[d][last];
        node.hi[d][i] = node.hi[d][last];
      }
      break;
    }
    if (node.count > 0) return;
    const std::uint32_t parent = node.parent;
    pool.release(index);
    if (parent == kNone) {
      root_ = kNone;
    } else {
      remove_child(pool, parent, ndims, index);
    }
  }

  static void release_node(Pool& pool, std::uint32_t index) {
    if (!pool[index].leaf) {
      for (std::uint32_t i = 0; i < pool[index].count; ++i) release_node(pool, pool[index].child[i]);
    }
    pool.release(index);
  }

  std::uint32_t root_ = kNone;
};

}  // namespace simpler::graph
