// TensorInfo: what a program of the oldest interface (orchestration_api.h) tells about the memory that a task uses.
#pragma once
#include <cstdint>

#include "data_type.h"
#include "task_args.h"

// A box of a row-major matrix.
struct TensorInfo {
  DataType dtype;
  uint8_t ndims;
  uint16_t reserved;
  uint32_t shapes[MAX_TENSOR_DIMS];      // of the box
  uint32_t raw_shapes[MAX_TENSOR_DIMS];  // of the matrix
  uint32_t offsets[MAX_TENSOR_DIMS];
};
static_assert(sizeof(TensorInfo) == 64, "programs keep arrays of it");

// Without raw shapes the box is the whole matrix, without offsets it starts at its origin.
inline TensorInfo make_tensor_info(DataType dtype, uint32_t ndims, const uint32_t* shapes,
                                   const uint32_t* raw_shapes = nullptr, const uint32_t* offsets = nullptr) {
  TensorInfo info{};
  info.dtype = dtype;
  info.ndims = static_cast<uint8_t>(ndims < MAX_TENSOR_DIMS ? ndims : MAX_TENSOR_DIMS);
  for (uint32_t d = 0; d < info.ndims; ++d) {
    info.shapes[d] = shapes[d];
    info.raw_shapes[d] = raw_shapes != nullptr ? raw_shapes[d] : shapes[d];
    info.offsets[d] = offsets != nullptr ? offsets[d] : 0;
  }
  return info;
}
inline TensorInfo make_tensor_info_from_tensor_arg(const ContinuousTensor& argument) {
  return make_tensor_info(argument.dtype, argument.ndims, argument.shapes);
}
