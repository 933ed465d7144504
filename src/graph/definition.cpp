#include "graph/definition.h"

#include <cstring>
#include <string>
#include <unordered_map>

namespace simpler::graph {
namespace {

template <typename T> bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// A multiplication for each 8 bytes: kept graphs are compared byte by byte anyway.
template <typename T> void mix(std::uint64_t* hash, const std::vector<T>& values) {
  const char* bytes = reinterpret_cast<const char*>(values.data());
  std::size_t left = values.size() * sizeof(T);
  *hash = (*hash ^ left) * 0x9E3779B97F4A7C15ull;
  for (; left > 0; bytes += 8) {
    std::uint64_t word = 0;
    const std::size_t step = left < 8 ? left : 8;
    std::memcpy(&word, bytes, step);
    *hash = (*hash ^ word) * 0x9E3779B97F4A7C15ull;
    *hash ^= *hash >> 29;
    left -= step;
  }
}

// Of the view, in bytes of its buffer.
std::uint64_t begin_of(const ChipTensor& tensor) { return tensor.start_offset * get_element_size(tensor.dtype); }
std::uint64_t end_of(const ChipTensor& tensor) {
  return begin_of(tensor) + tensor.extent_elem_cache * get_element_size(tensor.dtype);
}
bool meet(const ChipTensor& a, const ChipTensor& b) { return begin_of(a) < end_of(b) && begin_of(b) < end_of(a); }

}  // namespace

BoundaryTensor BoundaryTensor::of(const ChipTensor& tensor, TensorArgType tag) {
  BoundaryTensor result{};
  result.bytes = tensor.buffer.size;
  for (std::uint32_t d = 0; d < tensor.ndims; ++d) {
    result.shapes[d] = tensor.shapes[d];
    result.strides[d] = tensor.strides[d];
  }
  result.ndims = tensor.ndims;
  result.version = tensor.version;
  result.tag = static_cast<std::uint8_t>(tag);
  result.dtype = static_cast<std::uint8_t>(tensor.dtype);
  result.is_contiguous = tensor.is_contiguous;
  result.manual_dep = tensor.manual_dep;
  result.address_space = static_cast<std::uint8_t>(tensor.address_space);
  return result;
}

std::vector<BoundaryPair> pairs_of(const ChipTensor* const* tensors, BoundaryTensor* boundary, std::size_t count) {
  std::vector<BoundaryPair> pairs;
  for (std::size_t j = 0; j < count; ++j) {
    boundary[j].first_of_buffer = static_cast<std::uint8_t>(j);
    for (std::size_t i = j; i-- > 0;) {
      if (tensors[i]->buffer.addr != tensors[j]->buffer.addr) continue;
      boundary[j].first_of_buffer = static_cast<std::uint8_t>(i);
      const bool close = meet(*tensors[i], *tensors[j]);
      pairs.push_back({static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(j), close,
                       close ? static_cast<std::int64_t>(begin_of(*tensors[j]) - begin_of(*tensors[i])) : 0});
    }
  }
  return pairs;
}

bool Recording::operator==(const Recording& other) const {
  return same(boundary, other.boundary) && pairs == other.pairs && same(scalars_seen, other.scalars_seen) &&
         same(scalars_compared, other.scalars_compared) && same(nodes, other.nodes) &&
         same(producers, other.producers) && same(sources, other.sources) && same(scalars, other.scalars) &&
         same(scalar_sources, other.scalar_sources) && same(accesses, other.accesses) &&
         same(initial_values, other.initial_values) && heap_bytes == other.heap_bytes && same(tensors, other.tensors);
}

std::uint64_t Recording::hash() const {
  std::uint64_t result = heap_bytes;
  mix(&result, boundary);
  mix(&result, scalars_seen);
  mix(&result, nodes);
  mix(&result, producers);
  mix(&result, sources);
  mix(&result, scalars);
  mix(&result, accesses);
  return result;
}

Definition::Definition(Recording recording) : recording_(std::move(recording)), hash_(recording_.hash()) {
  std::vector<bool> used(recording_.nodes.size(), false);
  for (const std::uint32_t producer : recording_.producers) used[producer] = true;
  for (std::uint32_t n = 0; n < used.size(); ++n) {
    if (!used[n]) sinks_.push_back(n);
  }
  std::unordered_map<std::string, std::uint32_t> known;
  std::size_t tensor = 0;
  for (const Node& node : recording_.nodes) {
    const std::size_t before = known.size();
    for (const std::size_t end = tensor + node.tensor_count; tensor < end; ++tensor) {
      std::string content(reinterpret_cast<const char*>(&recording_.tensors[tensor]), sizeof(ChipTensor));
      content.append(reinterpret_cast<const char*>(&recording_.sources[tensor]), sizeof(TensorSource));
      descriptors_.push_back(known.emplace(std::move(content), static_cast<std::uint32_t>(known.size())).first->second);
    }
    own_descriptors_.push_back(static_cast<std::uint8_t>(known.size() - before));
  }
  descriptor_count_ = known.size();
  constexpr std::uint32_t kNone = 0xFFFFFFFF;
  std::vector<std::uint32_t> view_of(descriptor_count_, kNone);
  for (const Access& access : recording_.accesses) {
    std::uint32_t& view = view_of[descriptors_[access.tensor]];
    if (view == kNone) view = static_cast<std::uint32_t>(view_count_++);
    views_.push_back(view);
    survivors_ += access.survives;
  }
}

const char* Definition::mismatch(const CoreTaskArgs& args) const {
  const std::size_t count = recording_.boundary.size();
  if (static_cast<std::size_t>(args.tensor_count()) != count) return "another number of tensors";
  if (static_cast<std::size_t>(args.scalar_count()) != recording_.scalars_compared.size())
    return "another number of scalars";
  const ChipTensor* tensors[CORE_MAX_TENSOR_ARGS];
  std::size_t shared = 0;  // pairs of one buffer met up to now
  for (std::size_t j = 0; j < count; ++j) {
    const ChipTensor& tensor = *(tensors[j] = &args.tensors()[j].ref());
    const BoundaryTensor& known = recording_.boundary[j];
    if (static_cast<std::uint8_t>(args.tag(static_cast<int>(j))) != known.tag) return "another direction of a tensor";
    bool alike = tensor.buffer.size == known.bytes && tensor.ndims == known.ndims && tensor.version == known.version &&
                 static_cast<std::uint8_t>(tensor.dtype) == known.dtype &&
                 tensor.is_contiguous == (known.is_contiguous != 0) && tensor.manual_dep == (known.manual_dep != 0) &&
                 static_cast<std::uint8_t>(tensor.address_space) == known.address_space;
    for (std::uint32_t d = 0; alike && d < known.ndims; ++d)
      alike = tensor.shapes[d] == known.shapes[d] && tensor.strides[d] == known.strides[d];
    if (!alike) return "another shape, layout, type or size of a tensor";
    for (std::size_t i = j; i-- > 0;) {
      if (tensors[i]->buffer.addr != tensor.buffer.addr) continue;
      const BoundaryPair* pair = shared < recording_.pairs.size() ? &recording_.pairs[shared] : nullptr;
      if (pair == nullptr || pair->first != i || pair->second != j) return "other tensors share a buffer";
      const bool close = meet(*tensors[i], tensor);
      if (close != pair->meet ||
          (close && static_cast<std::int64_t>(begin_of(tensor) - begin_of(*tensors[i])) != pair->distance)) {
        return "tensors of one buffer lie differently to each other";
      }
      ++shared;
    }
  }
  if (shared != recording_.pairs.size()) return "fewer tensors share a buffer";
  for (std::size_t s = 0; s < recording_.scalars_compared.size(); ++s) {
    if (recording_.scalars_compared[s] && args.scalars()[s] != recording_.scalars_seen[s])
      return "another value of a scalar that the body computes with";
  }
  return nullptr;
}

}  // namespace simpler::graph
