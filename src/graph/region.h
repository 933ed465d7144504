// Region: what a tensor view touches, in the form in which accesses are compared.
//
// What      Every view has a range of bytes from the first to past the last element. A view of a well-formed layout has
//           a box as well: its innermost stride is 1, each stride divides the one before, the storage is a whole number
//           of outermost strides, and the box lies inside the shape that the strides imply (fewer than 2^31 elements a
//           side). Two boxes of one layout (type, rank, strides) are compared exactly, dimension by dimension;
//           everything else by byte range, so that a verdict is never "disjoint" for views that share a byte, but may
//           be "overlap" for interleaved ones.
// Units     Bytes from the buffer's base; box coordinates in elements.
// Threads   A value.
#pragma once
#include <cstdint>

#include "tensor.h"

namespace simpler::graph {

struct Layout {
  std::uint32_t strides[MAX_TENSOR_DIMS];
  std::uint8_t ndims;
  DataType dtype;

  bool operator==(const Layout& other) const {
    bool same = ndims == other.ndims && dtype == other.dtype;
    for (std::uint32_t d = 0; d < MAX_TENSOR_DIMS; ++d) same = same && strides[d] == other.strides[d];
    return same;
  }
};

struct Box {
  std::uint32_t lo[MAX_TENSOR_DIMS];
  std::uint32_t hi[MAX_TENSOR_DIMS];  // exclusive

  bool meets(const Box& other, std::uint32_t ndims) const {
    bool result = true;
    for (std::uint32_t d = 0; d < ndims; ++d) result = result && lo[d] < other.hi[d] && other.lo[d] < hi[d];
    return result;
  }
  bool contains(const Box& other, std::uint32_t ndims) const {
    bool result = true;
    for (std::uint32_t d = 0; d < ndims; ++d) result = result && lo[d] <= other.lo[d] && other.hi[d] <= hi[d];
    return result;
  }
};

struct Region {
  std::uint64_t buffer;  // base address: regions of different buffers never overlap
  std::uint64_t begin;   // bytes from the base
  std::uint64_t end;
  Layout layout;
  Box box;
  std::int32_t version;
  bool exact;  // `box` is meaningful

  bool empty() const { return begin == end; }

  static Region of(const ChipTensor& tensor) {
    Region region;
    const std::uint64_t width = get_element_size(tensor.dtype);
    region.buffer = tensor.buffer.addr;
    region.begin = tensor.start_offset * width;
    region.end = region.begin + tensor.extent_elem_cache * width;
    region.layout.ndims = static_cast<std::uint8_t>(tensor.ndims);
    region.layout.dtype = tensor.dtype;
    for (std::uint32_t d = 0; d < MAX_TENSOR_DIMS; ++d)
      region.layout.strides[d] = d < tensor.ndims ? tensor.strides[d] : 0;
    region.version = tensor.version;
    region.exact = find_box(tensor, width, &region.box);
    return region;
  }

 private:
  // Divisions dominate the cost of a lookup, and 32-bit ones are several times faster.
  static std::uint64_t divide(std::uint64_t a, std::uint64_t b) {
    if (((a | b) >> 32) == 0) return static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b);
    return a / b;
  }

  static bool find_box(const ChipTensor& tensor, std::uint64_t width, Box* box) {
    const std::uint32_t ndims = tensor.ndims;
    if (ndims == 0 || tensor.strides[ndims - 1] != 1) return false;
    std::uint64_t rest = tensor.start_offset;
    std::uint64_t outer = divide(tensor.buffer.size, width);  // elements of the storage, then each stride in turn
    for (std::uint32_t d = 0; d < ndims; ++d) {
      const std::uint64_t stride = tensor.strides[d];
      std::uint64_t extent = outer, index = rest;  // of the reference shape in this dimension
      if (stride != 1) {
        if (stride == 0) return false;
        extent = divide(outer, stride);
        index = divide(rest, stride);
        if (extent * stride != outer) return false;
        rest -= index * stride;
      }
      if (index + tensor.shapes[d] > extent || extent > INT32_MAX) return false;
      box->lo[d] = static_cast<std::uint32_t>(index);
      box->hi[d] = static_cast<std::uint32_t>(index) + tensor.shapes[d];
      outer = stride;
      if (stride == 1) rest = 0;
    }
    return true;
  }
};

enum class Overlap { kNone, kSome, kCovered };

// How a later access meets an earlier one. kCovered: the later box contains the earlier one.
inline Overlap compare(const Region& later, const Region& earlier) {
  if (later.version > earlier.version) return Overlap::kSome;
  if (later.begin >= earlier.end || earlier.begin >= later.end) return Overlap::kNone;
  if (!later.exact || !earlier.exact || !(later.layout == earlier.layout)) return Overlap::kSome;
  const std::uint32_t ndims = later.layout.ndims;
  if (!later.box.meets(earlier.box, ndims)) return Overlap::kNone;
  return later.box.contains(earlier.box, ndims) ? Overlap::kCovered : Overlap::kSome;
}

}  // namespace simpler::graph
