// TensorMap: which live tasks write which bytes, by buffer, then by box.
//
// What      find() returns every live writer that a later access may overlap, exactly as compare() in region.h decides.
//           Within a buffer, regions of one layout are kept in a BoxTree, so that a tile among thousands of disjoint tiles
//           is found without looking at the others; regions without a box, and regions of other layouts than the
//           query's, are compared by byte range.
// Lifetime  An entry lives until its task is reclaimed (drop) or until a later INOUT covers it (remove). Finding and
//           removing are two steps, because a task that has found its producers may still have to wait for room.
// Threads   The submitter only.
// Limits    kCapacity entries; the caller asks room_for() before it commits a task.
#pragma once
#include <cstdint>
#include <vector>

#include "graph/box_tree.h"
#include "graph/region.h"
#include "pto_task_id.h"

namespace simpler::graph {

class TensorMap {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  static constexpr std::uint32_t kCapacity = 65536;

  TensorMap() : buckets_(kBuckets, kNone) {}

  void clear();
  bool room_for(std::uint32_t entries) const { return live_ + entries <= kCapacity; }
  std::uint32_t live() const { return live_; }

  // Whether any entry of that buffer may exist: a cheap reason not to describe an access in detail.
  bool knows(std::uint64_t buffer) const { return lookup(buffer) != kNone; }

  // Calls found(producer, entry, overlap) for each entry that `region` overlaps; one producer may come several times.
  template <typename Found> void find(const Region& region, Found found) const {
    const std::uint32_t buffer = lookup(region.buffer);
    if (buffer == kNone || region.empty()) return;
    const bool newer = region.version > buffers_[buffer].oldest_version;
    for (std::uint32_t group = buffers_[buffer].first_group; group != kNone; group = groups_[group].next) {
      const Group& candidates = groups_[group];
      candidates.tree.search(nodes_, candidates.layout.ndims, newer ? everything() : candidates.query(region),
                             [&](std::uint32_t entry) {
                               const Overlap overlap = compare(region, entries_[entry].region);
                               if (overlap != Overlap::kNone) found(entries_[entry].producer, entry, overlap);
                             });
    }
  }

  // Takes an entry out, since a later write replaces it. Removing it again does nothing.
  void remove(std::uint32_t entry) {
    if (!entries_[entry].erased) erase(entry);
  }

  // Registers a write of `producer`; *first_entry heads the list of that task's entries (kNone for none).
  void insert(const Region& region, PTO2TaskId producer, std::uint32_t* first_entry);

  // Forgets the entries of a reclaimed task.
  void drop(std::uint32_t first_entry);

 private:
  static constexpr std::uint32_t kBuckets = 4096;

  struct Entry {
    Region region;
    PTO2TaskId producer;
    std::uint32_t group;
    std::uint32_t leaf;
    std::uint32_t next_of_task;  // list of the task's entries; kNone at its end
    bool erased;                 // removed by a cover, still in its task's list
  };

  // The regions of one buffer that share a layout; or, with `by_bytes`, those without a box.
  struct Group {
    Layout layout;
    std::uint32_t next;  // of the buffer's groups
    std::uint32_t buffer;
    std::uint32_t element_bytes;
    bool by_bytes;
    BoxTree tree;

    Box box_of(const Region& region) const;
    // A box of this group's coordinates that meets at least all entries that `region` may overlap.
    Box query(const Region& region) const;
  };

  struct Buffer {
    std::uint64_t address;
    std::uint32_t next;  // of its bucket
    std::uint32_t first_group;
    std::uint32_t count;          // entries
    std::int32_t oldest_version;  // of any entry since the buffer was first seen
  };

  // Objects with stable indices and a free list.
  template <typename T> struct Store {
    std::vector<T> items;
    std::vector<std::uint32_t> free;
    T& operator[](std::uint32_t i) { return items[i]; }
    const T& operator[](std::uint32_t i) const { return items[i]; }
    std::uint32_t take() {
      if (free.empty()) {
        items.emplace_back();
        return static_cast<std::uint32_t>(items.size() - 1);
      }
      const std::uint32_t index = free.back();
      free.pop_back();
      return index;
    }
    void give(std::uint32_t index) { free.push_back(index); }
    void clear() {
      items.clear();
      free.clear();
    }
  };

  static Box everything();
  // Golden-ratio multiplicative hash: bases are multiples of large powers of two.
  static std::uint32_t bucket_of(std::uint64_t address) {
    return static_cast<std::uint32_t>(address * 0x9E3779B97F4A7C15ull >> 52);
  }
  std::uint32_t lookup(std::uint64_t address) const {
    std::uint32_t buffer = buckets_[bucket_of(address)];
    while (buffer != kNone && buffers_[buffer].address != address) buffer = buffers_[buffer].next;
    return buffer;
  }
  std::uint32_t buffer_for(std::uint64_t address);
  std::uint32_t group_for(std::uint32_t buffer, const Region& region);
  void erase(std::uint32_t index);
  void drop_if_empty(std::uint32_t buffer);

  std::vector<std::uint32_t> buckets_;
  Store<Buffer> buffers_;
  Store<Group> groups_;
  Store<Entry> entries_;
  BoxTree::Pool nodes_;
  std::uint32_t live_ = 0;
};

}  // namespace simpler::graph
