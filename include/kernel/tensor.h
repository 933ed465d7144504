// ChipTensor: the 128-byte tensor descriptor that orchestrations pass around and kernels receive by pointer.
//
// What      A strided view of an allocation: base address and size in bytes, origin in elements, shape, element strides.
// Views     view, slice, reshape, transpose, permute return new descriptors of the same memory; they keep buffer and
//           owner_task_id and take manual_dep from their last argument (it is not inherited).
// Layout    Fixed: the runtime copies descriptors into tasks, kernels read fields by offset. Asserted below.
// Threads   A value.
// C++17 without libraries in kernels; dump() exists where pto_orchestration_api.h is included.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>  // for kernels and orchestrations: they use size_t, memcpy and memset without including them

#include "common/assertion.h"
#include "data_type.h"
#include "pto_task_id.h"

constexpr int MAX_TENSOR_DIMS = 5;

enum class AddressSpace : uint8_t { HOST = 0, DEVICE = 1 };

struct PTOBufferHandle {
  uint64_t addr;  // device address of the allocation
  uint64_t size;  // bytes
};

struct alignas(64) ChipTensor {
  PTOBufferHandle buffer;
  PTO2TaskId owner_task_id;  // the task that created the memory; invalid for memory from outside the run
  uint64_t start_offset;     // elements from buffer.addr to the view's first element
  int32_t version;           // 0 unless the user counts versions
  uint32_t ndims;            // 1..5
  DataType dtype;
  bool manual_dep;             // accesses through this descriptor are not tracked (the creator still is)
  bool is_contiguous;          // elements lie row-major without gaps
  AddressSpace address_space;  // DEVICE: a device address from the start, never staged
  uint32_t shapes[MAX_TENSOR_DIMS];
  uint64_t
      extent_elem_cache;  // elements from the first to past the last one: 1 + sum((shape - 1) * stride), 0 if empty
  uint32_t strides[MAX_TENSOR_DIMS];  // elements, > 0
  uint8_t pad[36];

  ChipTensor() = default;

  uint64_t numel() const {
    uint64_t count = 1;
    for (uint32_t d = 0; d < ndims; ++d) count *= shapes[d];
    return count;
  }
  uint64_t extent_elem() const { return extent_elem_cache; }
  bool is_device_memory() const { return address_space == AddressSpace::DEVICE; }
  uint64_t nbytes() const { return numel() * get_element_size(dtype); }

  // The allocation's base, without the view's origin.
  template <typename T> T* data_as() const { return reinterpret_cast<T*>(buffer.addr); }

  // Lets a descriptor stand where a TensorRef is expected: entry arguments are descriptors.
  const ChipTensor& ref() const { return *this; }

  void init_external(void* addr, uint64_t bytes, const uint32_t shape[], uint32_t rank, DataType type,
                     int32_t version_number, bool manual = false, AddressSpace space = AddressSpace::HOST) {
    buffer = {reinterpret_cast<uint64_t>(addr), bytes};
    owner_task_id = PTO2TaskId::invalid();
    start_offset = 0;
    version = version_number;
    dtype = type;
    manual_dep = manual;
    address_space = space;
    set_shape_row_major(shape, rank);
  }
  void init_from(const ChipTensor& other) { *this = other; }
  void copy(const ChipTensor& other) { *this = other; }
  // Copies the first 64 bytes (identity, origin, type, shape) and derives the rest as row-major.
  void init_from_line1(const ChipTensor& other) {
    buffer = other.buffer;
    owner_task_id = other.owner_task_id;
    start_offset = other.start_offset;
    version = other.version;
    dtype = other.dtype;
    manual_dep = other.manual_dep;
    address_space = other.address_space;
    set_shape_row_major(other.shapes, other.ndims);
  }

  // Elements from buffer.addr to the element at idx.
  uint64_t compute_flat_offset(const uint32_t idx[], uint32_t rank) const {
    uint64_t offset = start_offset;
    for (uint32_t d = 0; d < rank; ++d) offset += static_cast<uint64_t>(idx[d]) * strides[d];
    return offset;
  }

  // A box of the same rank. If a new dimension is 0 the offsets do not matter and the result is empty.
  ChipTensor view(const uint32_t shape[], const uint32_t offsets[], bool manual = false) const {
    ChipTensor result = *this;
    result.manual_dep = manual;
    bool empty = false;
    for (uint32_t d = 0; d < ndims; ++d) empty = empty || shape[d] == 0;
    if (empty) {
      result.set_shape_row_major(shape, ndims);
      return result;
    }
    for (uint32_t d = 0; d < ndims; ++d) {
      debug_assert(static_cast<uint64_t>(offsets[d]) + shape[d] <= shapes[d]);
      result.start_offset += static_cast<uint64_t>(offsets[d]) * strides[d];
      result.shapes[d] = shape[d];
    }
    result.refresh_layout();
    debug_assert(result.fits_buffer());
    return result;
  }

  // The same elements under another shape; needs a contiguous view and the same number of elements.
  ChipTensor reshape(const uint32_t shape[], uint32_t rank, bool manual = false) const {
    always_assert(rank >= 1 && rank <= MAX_TENSOR_DIMS);
    always_assert(valid_reshape(shape, rank));
    ChipTensor result = *this;
    result.manual_dep = manual;
    result.set_shape_row_major(shape, rank);
    return result;
  }
  bool valid_reshape(const uint32_t shape[], uint32_t rank) const {
    uint64_t count = 1;
    for (uint32_t d = 0; d < rank; ++d) count *= shape[d];
    return is_contiguous && count == numel();
  }

  ChipTensor transpose(uint32_t x, uint32_t y, bool manual = false) const {
    always_assert(valid_transpose(x, y));
    uint32_t order[MAX_TENSOR_DIMS] = {0, 1, 2, 3, 4};
    order[x] = y;
    order[y] = x;
    return permute(order, manual);
  }
  bool valid_transpose(uint32_t x, uint32_t y) const { return x < ndims && y < ndims; }

  // Dimension d of the result is dimension order[d] of this view.
  ChipTensor permute(const uint32_t order[], bool manual = false) const {
    ChipTensor result = *this;
    result.manual_dep = manual;
    uint32_t seen = 0;
    for (uint32_t d = 0; d < ndims; ++d) {
      always_assert(order[d] < ndims && !(seen >> order[d] & 1u));
      seen |= 1u << order[d];
      result.shapes[d] = shapes[order[d]];
      result.strides[d] = strides[order[d]];
    }
    result.refresh_layout();
    return result;
  }

  // Every step-th element of [start, end) along one dimension.
  ChipTensor slice(uint32_t dim, uint32_t start, uint32_t end, uint32_t step = 1, bool manual = false) const {
    always_assert(dim < ndims && step >= 1 && start <= end);
    debug_assert(end <= shapes[dim]);
    ChipTensor result = *this;
    result.manual_dep = manual;
    result.shapes[dim] = (end - start) / step + ((end - start) % step != 0 ? 1 : 0);
    if (result.shapes[dim] == 0) {
      result.set_shape_row_major(result.shapes, ndims);
      return result;
    }
    result.start_offset += static_cast<uint64_t>(start) * strides[dim];
    result.strides[dim] = strides[dim] * step;
    result.refresh_layout();
    debug_assert(result.fits_buffer());
    return result;
  }

  // One line for people; defined by pto_orchestration_api.h, since kernels do without <string>.
  template <typename Unused = void> auto dump() const;

  // Sets shape and row-major strides, and what follows from them.
  void set_shape_row_major(const uint32_t shape[], uint32_t rank) {
    uint32_t copy_of_shape[MAX_TENSOR_DIMS] = {};  // `shape` may be this descriptor's own
    for (uint32_t d = 0; d < rank && d < MAX_TENSOR_DIMS; ++d) copy_of_shape[d] = shape[d];
    ndims = rank;
    uint64_t stride = 1;
    for (uint32_t d = MAX_TENSOR_DIMS; d-- > 0;) {
      const bool used = d < rank;
      shapes[d] = used ? copy_of_shape[d] : 0;
      strides[d] = used ? static_cast<uint32_t>(stride) : 0;
      if (used && copy_of_shape[d] > 1) stride *= copy_of_shape[d];
    }
    is_contiguous = true;
    extent_elem_cache = numel();
  }
  // Recomputes extent and contiguity after shapes or strides changed.
  void refresh_layout() {
    uint64_t extent = 1, expected = 1;
    bool dense = true;
    if (numel() == 0) {  // an empty view touches nothing
      extent_elem_cache = 0;
      is_contiguous = true;
      return;
    }
    for (uint32_t d = ndims; d-- > 0;) {
      extent += static_cast<uint64_t>(shapes[d] - 1) * strides[d];
      dense = dense && (shapes[d] == 1 || strides[d] == expected);
      expected *= shapes[d];
    }
    extent_elem_cache = extent;
    is_contiguous = dense;
  }
  bool fits_buffer() const { return (start_offset + extent_elem_cache) * get_element_size(dtype) <= buffer.size; }
};

static_assert(sizeof(ChipTensor) == 128 && alignof(ChipTensor) == 64, "descriptors are two cache lines");
static_assert(__builtin_offsetof(ChipTensor, buffer) == 0, "");
static_assert(__builtin_offsetof(ChipTensor, owner_task_id) == 16, "");
static_assert(__builtin_offsetof(ChipTensor, start_offset) == 24, "");
static_assert(__builtin_offsetof(ChipTensor, version) == 32, "");
static_assert(__builtin_offsetof(ChipTensor, ndims) == 36, "");
static_assert(__builtin_offsetof(ChipTensor, dtype) == 40, "");
static_assert(__builtin_offsetof(ChipTensor, manual_dep) == 41, "");
static_assert(__builtin_offsetof(ChipTensor, is_contiguous) == 42, "");
static_assert(__builtin_offsetof(ChipTensor, address_space) == 43, "");
static_assert(__builtin_offsetof(ChipTensor, shapes) == 44, "");
static_assert(__builtin_offsetof(ChipTensor, extent_elem_cache) == 64, "");
static_assert(__builtin_offsetof(ChipTensor, strides) == 72, "");
static_assert(std::is_trivially_copyable<ChipTensor>::value, "descriptors are copied as bytes");

// A contiguous tensor over memory that the run did not allocate; addr is a device address.
inline ChipTensor make_tensor_external(void* addr, const uint32_t shapes[], uint32_t ndims,
                                       DataType dtype = DataType::FLOAT32, bool manual_dep = false, int32_t version = 0,
                                       AddressSpace space = AddressSpace::HOST) {
  always_assert(ndims >= 1 && ndims <= MAX_TENSOR_DIMS);
  ChipTensor tensor;
  tensor.init_external(addr, 0, shapes, ndims, dtype, version, manual_dep, space);
  tensor.buffer.size = tensor.nbytes();
  return tensor;
}

// The same with element strides of the caller's choice, all > 0.
inline ChipTensor make_tensor_strided(void* addr, const uint32_t shapes[], const uint32_t strides[], uint32_t ndims,
                                      DataType dtype = DataType::FLOAT32, bool manual_dep = false, int32_t version = 0,
                                      AddressSpace space = AddressSpace::HOST) {
  ChipTensor tensor = make_tensor_external(addr, shapes, ndims, dtype, manual_dep, version, space);
  bool empty = false;
  for (uint32_t d = 0; d < ndims; ++d) {
    always_assert(strides[d] > 0);
    tensor.strides[d] = strides[d];
    empty = empty || shapes[d] == 0;
  }
  if (!empty) {
    tensor.refresh_layout();
    tensor.buffer.size = tensor.extent_elem_cache * get_element_size(dtype);
  }
  return tensor;
}

// Names of the older interface.
using Tensor = ChipTensor;
constexpr int RUNTIME_MAX_TENSOR_DIMS = MAX_TENSOR_DIMS;
