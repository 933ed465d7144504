#include "graph/tensor_map.h"

#include <algorithm>

namespace simpler::graph {
namespace {

// Byte offsets are scaled to fit 31-bit coordinates: floor for the low end, ceiling for the high one, so that ranges
// only ever grow.
constexpr int kByteShift = 12;

std::uint32_t byte_floor(std::uint64_t bytes) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes >> kByteShift, INT32_MAX - 1));
}
std::uint32_t byte_ceiling(std::uint64_t bytes) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>((bytes >> kByteShift) + 1, INT32_MAX));
}

}  // namespace

Box TensorMap::everything() {
  Box box;
  for (std::uint32_t d = 0; d < MAX_TENSOR_DIMS; ++d) {
    box.lo[d] = 0;
    box.hi[d] = INT32_MAX;
  }
  return box;
}

Box TensorMap::Group::box_of(const Region& region) const {
  if (!by_bytes) return region.box;
  Box box;
  box.lo[0] = byte_floor(region.begin);
  box.hi[0] = byte_ceiling(region.end - 1);
  return box;
}

Box TensorMap::Group::query(const Region& region) const {
  if (by_bytes || (region.exact && region.layout == layout)) return box_of(region);
  // Another layout meets this one's boxes by byte range, which bounds their outermost coordinate.
  Box box = everything();
  const std::uint64_t outermost = std::uint64_t{layout.strides[0]} * element_bytes;
  box.lo[0] = static_cast<std::uint32_t>(std::min<std::uint64_t>(region.begin / outermost, INT32_MAX - 1));
  box.hi[0] = static_cast<std::uint32_t>(std::min<std::uint64_t>((region.end - 1) / outermost + 1, INT32_MAX));
  return box;
}

void TensorMap::clear() {
  // Few runs fill many buckets: it is cheaper to empty those that were used.
  for (const Place& place : places_.items) place_buckets_[place.hash % kPlaceBuckets] = kNone;
  for (const Buffer& buffer : buffers_.items) buffer_buckets_[bucket_of(buffer.address)] = kNone;
  for (Group& group : groups_.items) group.tree.release_all(nodes_);
  buffers_.clear();
  groups_.clear();
  places_.clear();
  writers_.clear();
  in_the_way_.clear();
  live_ = idle_ = 0;
}

std::uint32_t TensorMap::buffer_for(std::uint64_t address) {
  std::uint32_t buffer = lookup(address);
  if (buffer != kNone) return buffer;
  buffer = buffers_.take();
  std::uint32_t& bucket = buffer_buckets_[bucket_of(address)];
  buffers_[buffer] = Buffer{address, 0, bucket, kNone, 0, 0, INT32_MAX};
  bucket = buffer;
  return buffer;
}

std::uint32_t TensorMap::group_for(std::uint32_t buffer, const Region& region) {
  for (std::uint32_t group = buffers_[buffer].first_group; group != kNone; group = groups_[group].next) {
    const Group& g = groups_[group];
    if (region.exact ? !g.by_bytes && g.layout == region.layout : g.by_bytes) return group;
  }
  const std::uint32_t group = groups_.take();
  Group& fresh = groups_[group];
  fresh = Group{};
  fresh.by_bytes = !region.exact;
  fresh.layout = region.layout;
  if (fresh.by_bytes) fresh.layout.ndims = 1;
  fresh.element_bytes = static_cast<std::uint32_t>(get_element_size(region.layout.dtype));
  fresh.next = buffers_[buffer].first_group;
  buffers_[buffer].first_group = group;
  return group;
}

std::uint32_t TensorMap::add_place(Access& access) {
  const ChipTensor& tensor = *access.tensor;
  const std::uint32_t buffer = buffer_for(tensor.buffer.addr), group = group_for(buffer, access.region);
  const std::uint32_t index = places_.take();
  Place& place = places_[index];
  place.memory = tensor.buffer;
  place.start_offset = tensor.start_offset;
  place.version = tensor.version;
  place.ndims = static_cast<std::uint8_t>(tensor.ndims);
  place.dtype = tensor.dtype;
  for (std::uint32_t d = 0; d < tensor.ndims; ++d) {
    place.shapes[d] = tensor.shapes[d];
    place.strides[d] = tensor.strides[d];
  }
  place.region = access.region;
  place.hash = access.hash;
  place.alone_since = 0;
  place.newest = kNone;
  place.buffer = buffer;
  place.group = group;
  std::uint32_t& bucket = place_buckets_[access.hash % kPlaceBuckets];
  place.next = bucket;
  bucket = index;
  ++idle_;
  Buffer& b = buffers_[buffer];
  ++b.places;
  ++b.changes;
  b.oldest_version = std::min(b.oldest_version, access.region.version);
  Group& g = groups_[group];
  g.tree.insert(nodes_, g.layout.ndims, g.box_of(access.region), index,
                [this](std::uint32_t value, std::uint32_t leaf) { places_[value].leaf = leaf; });
  return index;
}

// An idle place. With its last place, the buffer goes as well.
void TensorMap::remove_place(std::uint32_t index) {
  Place& place = places_[index];
  Group& group = groups_[place.group];
  group.tree.erase(nodes_, group.layout.ndims, place.leaf, index);
  std::uint32_t* link = &place_buckets_[place.hash % kPlaceBuckets];
  while (*link != index) link = &places_[*link].next;
  *link = place.next;
  --idle_;
  Buffer& buffer = buffers_[place.buffer];
  if (--buffer.places == 0) {
    for (std::uint32_t g = buffer.first_group; g != kNone;) {
      const std::uint32_t next = groups_[g].next;
      groups_.give(g);
      g = next;
    }
    std::uint32_t* bucket = &buffer_buckets_[bucket_of(buffer.address)];
    while (*bucket != place.buffer) bucket = &buffers_[*bucket].next;
    *bucket = buffer.next;
    buffers_.give(place.buffer);
  }
  place.buffer = kNone;
  places_.give(index);
}

void TensorMap::insert(Access& access, PTO2TaskId producer, std::uint32_t* first_writer) {
  if (access.place == kNone) access.place = lookup(*access.tensor, access.hash);  // another access may have added it
  if (access.place == kNone) {
    describe(access);
    if (access.region.empty()) return;
    access.place = add_place(access);
  }
  Place& place = places_[access.place];
  const std::uint32_t index = writers_.take();
  writers_[index] = Writer{producer, access.place, place.newest, kNone, *first_writer, false};
  *first_writer = index;
  if (place.newest == kNone) {
    --idle_;
  } else {
    writers_[place.newest].newer = index;
  }
  place.newest = index;
  ++buffers_[place.buffer].writers;
  ++live_;
}

// Takes the writer out of its place, which stays: a covering write is about to use it again.
void TensorMap::erase(std::uint32_t index) {
  Writer& writer = writers_[index];
  Place& place = places_[writer.place];
  if (writer.older != kNone) writers_[writer.older].newer = writer.newer;
  if (writer.newer != kNone) {
    writers_[writer.newer].older = writer.older;
  } else {
    place.newest = writer.older;
    if (place.newest == kNone) ++idle_;
  }
  --buffers_[place.buffer].writers;
  writer.erased = true;
  --live_;
}

void TensorMap::drop(std::uint32_t first_writer) {
  for (std::uint32_t index = first_writer; index != kNone;) {
    const std::uint32_t next = writers_[index].next_of_task;
    if (!writers_[index].erased) {
      const std::uint32_t place = writers_[index].place;
      erase(index);
      // A buffer with one place is mostly a task's own memory, which does not come back.
      const Buffer& buffer = buffers_[places_[place].buffer];
      if (buffer.writers == 0 && buffer.places == 1) remove_place(place);
    }
    writers_.give(index);
    index = next;
  }
}

void TensorMap::let_go() {
  const auto remove_if_idle = [this](std::uint32_t index) {
    if (places_[index].buffer != kNone && places_[index].newest == kNone) remove_place(index);
  };
  for (const std::uint32_t index : in_the_way_) remove_if_idle(index);
  in_the_way_.clear();
  if (idle_ <= kIdlePlaces || idle_ <= 2 * (places() - idle_)) return;
  for (std::uint32_t index = 0; index < places_.items.size(); ++index) remove_if_idle(index);
}

}  // namespace simpler::graph
