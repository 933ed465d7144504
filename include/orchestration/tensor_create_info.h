// TensorCreateInfo: an output that the runtime allocates when the task is submitted.
// One object may describe many outputs of many tasks; it must outlive each submit call that uses it.
#pragma once
#include <cstddef>
#include <cstdint>

#include "tensor.h"

struct alignas(64) TensorCreateInfo {
  uint64_t initial_value;  // element pattern in the low bytes
  bool has_initial_value;  // fill the whole buffer with initial_value at submission
  uint8_t pad0[7];
  uint64_t pad1;
  uint64_t start_offset;
  int32_t version;
  uint32_t ndims;
  DataType dtype;
  bool manual_dep;
  bool is_contiguous;
  uint8_t pad2;
  uint32_t shapes[MAX_TENSOR_DIMS];

  TensorCreateInfo() = default;
  TensorCreateInfo(const uint32_t shape[], uint32_t rank, DataType type = DataType::FLOAT32, bool manual = false)
      : initial_value(0),
        has_initial_value(false),
        pad0{},
        pad1(0),
        start_offset(0),
        version(0),
        ndims(rank),
        dtype(type),
        manual_dep(manual),
        is_contiguous(true),
        pad2(0),
        shapes{} {
    always_assert(rank >= 1 && rank <= MAX_TENSOR_DIMS);
    for (uint32_t d = 0; d < rank; ++d) shapes[d] = shape[d];
  }

  template <typename T = uint64_t> void set_initial_value(T value) {
    initial_value = to_u64(value);
    has_initial_value = true;
  }
  uint64_t buffer_size_bytes() const {
    uint64_t bytes = get_element_size(dtype);
    for (uint32_t d = 0; d < ndims; ++d) bytes *= shapes[d];
    return bytes;
  }
  void copy(const TensorCreateInfo& other) { *this = other; }
};
static_assert(sizeof(TensorCreateInfo) == 64 && offsetof(TensorCreateInfo, ndims) == 36 &&
                  offsetof(TensorCreateInfo, shapes) == 44 && offsetof(TensorCreateInfo, start_offset) == 24,
              "mirrors the first line of ChipTensor");
