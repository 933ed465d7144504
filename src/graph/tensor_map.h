// TensorMap: which live tasks write which bytes.
//
// What      find() returns every live writer that a later access may overlap, exactly as compare() in region.h decides.
//           What a task writes is a *place*: a buffer and a view of it, to which its live writers are attached. Programs
//           come back to the same places again and again, so a place is found by hashing its descriptor, and it
//           remembers whether it is *alone*: whether it overlaps no other place of its buffer. Then its writers are the
//           answer, without computing a box. Otherwise the places of a buffer are searched: those of one layout are kept
//           in a BoxTree, so that a tile among thousands of disjoint tiles is found without looking at the others;
//           places without a box, and places of other layouts than the query's, are compared by byte range.
// Use       begin_access() for each tensor, find() where earlier writers matter, and, once the task is certain, remove()
//           what it covers and insert() what it writes. Finding and changing are two steps, because a task that has
//           found its producers may still have to wait for room. tidy() between two tasks.
// Lifetime  A writer lives until its task is reclaimed (drop) or until a later INOUT covers it (remove). A place without
//           writers is kept for its next one, but no more than kIdlePlaces or, if more, twice as many as have writers;
//           and not if it is in the way of searches.
// Threads   The submitter only.
// Limits    kCapacity writers; the caller asks room_for() before it commits a task.
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
  static constexpr std::uint32_t kIdlePlaces = 8192;

  // A tensor about to be looked up and perhaps written. Valid until the next tidy(), drop() or clear().
  struct Access {
    const ChipTensor* tensor;
    std::uint32_t hash;
    std::uint32_t place;  // kNone: not known
    bool described;       // `region` is filled in
    Region region;
  };

  TensorMap() : place_buckets_(kPlaceBuckets, kNone), buffer_buckets_(kBufferBuckets, kNone) {}

  void clear();
  bool room_for(std::uint32_t writers) const { return live_ + writers <= kCapacity; }
  std::uint32_t live() const { return live_; }  // writers
  std::uint32_t places() const { return static_cast<std::uint32_t>(places_.items.size() - places_.free.size()); }

  // Whether any writer to that buffer lives: a cheap reason not to look closer.
  bool knows(std::uint64_t address) const {
    const std::uint32_t buffer = lookup(address);
    return buffer != kNone && buffers_[buffer].writers > 0;
  }

  void begin_access(const ChipTensor& tensor, Access& access) const {
    access.tensor = &tensor;
    access.hash = hash_of(tensor);
    access.place = lookup(tensor, access.hash);
    access.described = false;
  }

  // Calls found(producer, writer, overlap) for each writer that the access overlaps; one producer may come several times.
  template <typename Found> void find(Access& access, Found found) {
    if (access.place != kNone && places_[access.place].alone_since == buffers_[places_[access.place].buffer].changes) {
      const Place& place = places_[access.place];
      for (std::uint32_t writer = place.newest; writer != kNone; writer = writers_[writer].older)
        found(writers_[writer].producer, writer, place.region.exact ? Overlap::kCovered : Overlap::kSome);
      return;
    }
    search(access, found);
  }

  // Takes a writer out, since a later write replaces it. Removing it again does nothing.
  void remove(std::uint32_t writer) {
    if (!writers_[writer].erased) erase(writer);
  }

  // Registers the access as a write of `producer`; *first_writer heads the list of that task's writers (kNone for none).
  void insert(Access& access, PTO2TaskId producer, std::uint32_t* first_writer);

  // Calls visit(present) for each write of a task, newest first; not present: a later one has covered it.
  template <typename Visit> void for_each_of_task(std::uint32_t first_writer, Visit visit) const {
    for (std::uint32_t writer = first_writer; writer != kNone; writer = writers_[writer].next_of_task)
      visit(!writers_[writer].erased);
  }

  // Forgets the writers of a reclaimed task.
  void drop(std::uint32_t first_writer);

  // Lets go of places that are no longer worth keeping. Invalidates every Access.
  void tidy() {
    if (!in_the_way_.empty() || idle_ > kIdlePlaces) let_go();
  }

 private:
  static constexpr std::uint32_t kPlaceBuckets = 16384;
  static constexpr std::uint32_t kBufferBuckets = 4096;

  struct Writer {
    PTO2TaskId producer;
    std::uint32_t place;
    std::uint32_t older, newer;  // of the place's writers
    std::uint32_t next_of_task;  // list of the task's writers; kNone at its end
    bool erased;                 // removed by a cover, still in its task's list
  };

  // The first two cache lines are all that finding a place by its descriptor touches.
  struct alignas(64) Place {
    PTOBufferHandle memory;
    std::uint64_t start_offset;
    std::uint64_t alone_since;  // overlapped no other place when Buffer::changes had this value; 0: not known
    std::int32_t version;
    std::uint32_t hash;
    std::uint32_t next;    // of its bucket
    std::uint32_t newest;  // writer; kNone: idle
    std::uint32_t buffer;  // kNone: an unused element of the store
    std::uint8_t ndims;
    DataType dtype;

    alignas(64) std::uint32_t shapes[MAX_TENSOR_DIMS];
    std::uint32_t strides[MAX_TENSOR_DIMS];
    std::uint32_t group, leaf;

    Region region;
  };

  // The places of one buffer that share a layout; or, with `by_bytes`, those without a box.
  struct Group {
    Layout layout;
    std::uint32_t next;  // of the buffer's groups
    std::uint32_t element_bytes;
    bool by_bytes;
    BoxTree tree;

    Box box_of(const Region& region) const;
    // A box of this group's coordinates that meets at least all places that `region` may overlap.
    Box query(const Region& region) const;
  };

  struct Buffer {
    std::uint64_t address;
    std::uint64_t changes;  // counts places that were added
    std::uint32_t next;     // of its bucket
    std::uint32_t first_group;
    std::uint32_t places, writers;
    std::int32_t oldest_version;  // of any place since the buffer was first seen
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
  // Golden-ratio multiplicative hashes: bases are multiples of large powers of two.
  static constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15ull;
  static std::uint32_t bucket_of(std::uint64_t address) { return static_cast<std::uint32_t>(address * kGolden >> 52); }
  static std::uint32_t hash_of(const ChipTensor& tensor) {
    const std::uint64_t where = tensor.buffer.addr + tensor.start_offset * 0xC2B2AE3D27D4EB4Full;
    const std::uint64_t what = std::uint64_t{tensor.shapes[0]} << 32 | tensor.shapes[tensor.ndims - 1];
    return static_cast<std::uint32_t>(((where * kGolden) ^ (what * 0xFF51AFD7ED558CCDull)) >> 32);
  }

  std::uint32_t lookup(std::uint64_t address) const {
    std::uint32_t buffer = buffer_buckets_[bucket_of(address)];
    while (buffer != kNone && buffers_[buffer].address != address) buffer = buffers_[buffer].next;
    return buffer;
  }
  std::uint32_t lookup(const ChipTensor& tensor, std::uint32_t hash) const {
    std::uint32_t place = place_buckets_[hash % kPlaceBuckets];
    while (place != kNone && !(places_[place].hash == hash && is_at(tensor, places_[place])))
      place = places_[place].next;
    return place;
  }
  static bool is_at(const ChipTensor& tensor, const Place& place) {
    bool same = tensor.buffer.addr == place.memory.addr && tensor.buffer.size == place.memory.size &&
                tensor.start_offset == place.start_offset && tensor.version == place.version &&
                tensor.ndims == place.ndims && tensor.dtype == place.dtype;
    for (std::uint32_t d = 0; same && d < tensor.ndims; ++d)
      same = tensor.shapes[d] == place.shapes[d] && tensor.strides[d] == place.strides[d];
    return same;
  }

  template <typename Found> void search(Access& access, Found& found);
  static void describe(Access& access) {
    if (access.described) return;
    access.region = Region::of(*access.tensor);
    access.described = true;
  }
  std::uint32_t buffer_for(std::uint64_t address);
  std::uint32_t group_for(std::uint32_t buffer, const Region& region);
  std::uint32_t add_place(Access& access);
  void remove_place(std::uint32_t index);
  void erase(std::uint32_t writer);
  void let_go();

  std::vector<std::uint32_t> place_buckets_;
  std::vector<std::uint32_t> buffer_buckets_;
  Store<Buffer> buffers_;
  Store<Group> groups_;
  Store<Place> places_;
  Store<Writer> writers_;
  BoxTree::Pool nodes_;
  std::uint32_t live_ = 0;                 // writers
  std::uint32_t idle_ = 0;                 // places without
  std::vector<std::uint32_t> in_the_way_;  // idle places that searches met; perhaps busy or gone by now
};

template <typename Found> void TensorMap::search(Access& access, Found& found) {
  const std::uint32_t buffer =
      access.place != kNone ? places_[access.place].buffer : lookup(access.tensor->buffer.addr);
  if (buffer == kNone) return;
  describe(access);
  if (access.region.empty()) return;
  std::uint32_t met = 0, idle = 0;
  const std::size_t before = in_the_way_.size();
  const bool newer = access.region.version > buffers_[buffer].oldest_version;
  for (std::uint32_t group = buffers_[buffer].first_group; group != kNone; group = groups_[group].next) {
    const Group& candidates = groups_[group];
    candidates.tree.search(nodes_, candidates.layout.ndims, newer ? everything() : candidates.query(access.region),
                           [&](std::uint32_t index) {
                             const Place& place = places_[index];
                             const Overlap overlap = compare(access.region, place.region);
                             if (overlap == Overlap::kNone) return;
                             ++met;
                             if (place.newest == kNone) {
                               ++idle;
                               in_the_way_.push_back(index);
                             }
                             for (std::uint32_t w = place.newest; w != kNone; w = writers_[w].older)
                               found(writers_[w].producer, w, overlap);
                           });
  }
  if (access.place != kNone && met == 1) places_[access.place].alone_since = buffers_[buffer].changes;
  if (2 * idle <= met) in_the_way_.resize(before);  // they cost less than finding out again
}

}  // namespace simpler::graph
