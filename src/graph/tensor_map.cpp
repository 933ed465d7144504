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
  std::fill(buckets_.begin(), buckets_.end(), kNone);
  for (Group& group : groups_.items) group.tree.release_all(nodes_);
  buffers_.clear();
  groups_.clear();
  entries_.clear();
  live_ = 0;
}

std::uint32_t TensorMap::buffer_for(std::uint64_t address) {
  std::uint32_t buffer = lookup(address);
  if (buffer != kNone) return buffer;
  buffer = buffers_.take();
  std::uint32_t& bucket = buckets_[bucket_of(address)];
  buffers_[buffer] = Buffer{address, bucket, kNone, 0, INT32_MAX};
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
  fresh.buffer = buffer;
  fresh.next = buffers_[buffer].first_group;
  buffers_[buffer].first_group = group;
  return group;
}

void TensorMap::insert(const Region& region, PTO2TaskId producer, std::uint32_t* first_entry) {
  if (region.empty()) return;
  const std::uint32_t buffer = buffer_for(region.buffer);
  const std::uint32_t group = group_for(buffer, region);
  const std::uint32_t index = entries_.take();
  entries_[index] = Entry{region, producer, group, BoxTree::kNone, *first_entry, false};
  *first_entry = index;
  ++buffers_[buffer].count;
  buffers_[buffer].oldest_version = std::min(buffers_[buffer].oldest_version, region.version);
  Group& g = groups_[group];
  g.tree.insert(nodes_, g.layout.ndims, g.box_of(region), index,
                [this](std::uint32_t value, std::uint32_t leaf) { entries_[value].leaf = leaf; });
  ++live_;
}

// Takes the entry out of its tree. Its buffer stays even if empty: a covering write is about to use it again.
void TensorMap::erase(std::uint32_t index) {
  Entry& entry = entries_[index];
  Group& group = groups_[entry.group];
  group.tree.erase(nodes_, group.layout.ndims, entry.leaf, index);
  --buffers_[group.buffer].count;
  entry.erased = true;
  --live_;
}

void TensorMap::drop(std::uint32_t first_entry) {
  for (std::uint32_t index = first_entry; index != kNone;) {
    const std::uint32_t next = entries_[index].next_of_task;
    if (!entries_[index].erased) {
      erase(index);
      drop_if_empty(groups_[entries_[index].group].buffer);
    }
    entries_.give(index);
    index = next;
  }
}

void TensorMap::drop_if_empty(std::uint32_t buffer) {
  if (buffers_[buffer].count > 0) return;
  for (std::uint32_t group = buffers_[buffer].first_group; group != kNone;) {
    const std::uint32_t next = groups_[group].next;
    groups_[group].tree.release_all(nodes_);
    groups_.give(group);
    group = next;
  }
  std::uint32_t* link = &buckets_[bucket_of(buffers_[buffer].address)];
  while (*link != buffer) link = &buffers_[*link].next;
  *link = buffers_[buffer].next;
  buffers_.give(buffer);
}

}  // namespace simpler::graph
