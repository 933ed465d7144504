// Random views of a tensor: boxes, steps, transposes, permutations, reshapes, one after the other.
#pragma once
#include <numeric>
#include <set>
#include <vector>

#include "tensor.h"
#include "unit/support/seed.h"

namespace simpler::test {

inline ChipTensor random_view(Random& random, const ChipTensor& base, int most_steps = 3) {
  ChipTensor tensor = base;
  for (std::uint32_t step = random.number(0, static_cast<std::uint32_t>(most_steps)); step > 0 && tensor.numel() > 0;
       --step) {
    switch (random.number(0, 4)) {
      case 0: {  // a box
        std::uint32_t shape[MAX_TENSOR_DIMS], offset[MAX_TENSOR_DIMS];
        for (std::uint32_t d = 0; d < tensor.ndims; ++d) {
          shape[d] = random.number(1, tensor.shapes[d]);
          offset[d] = random.number(0, tensor.shapes[d] - shape[d]);
        }
        tensor = tensor.view(shape, offset);
        break;
      }
      case 1: {  // every step-th element of one dimension; now and then none, which ends the series
        const std::uint32_t dim = random.number(0, tensor.ndims - 1), extent = tensor.shapes[dim];
        const std::uint32_t start = random.number(0, extent);
        const std::uint32_t end = random.chance(95) && start < extent ? random.number(start + 1, extent) : start;
        tensor = tensor.slice(dim, start, end, random.number(1, 3));
        break;
      }
      case 2: tensor = tensor.transpose(random.number(0, tensor.ndims - 1), random.number(0, tensor.ndims - 1)); break;
      case 3: {
        std::vector<std::uint32_t> order(tensor.ndims);
        std::iota(order.begin(), order.end(), 0);
        random.shuffle(order);
        tensor = tensor.permute(order.data());
        break;
      }
      default: {  // fold two dimensions into one, or split one into two
        std::vector<std::uint32_t> shape(tensor.shapes, tensor.shapes + tensor.ndims);
        if (random.chance(50) && shape.size() > 1) {
          const std::uint32_t d = random.number(0, static_cast<std::uint32_t>(shape.size()) - 2);
          shape[d] *= shape[d + 1];
          shape.erase(shape.begin() + d + 1);
        } else if (shape.size() < MAX_TENSOR_DIMS) {
          const std::uint32_t d = random.number(0, static_cast<std::uint32_t>(shape.size()) - 1);
          const std::uint32_t part = shape[d] % 3 == 0 ? 3 : shape[d] % 2 == 0 ? 2 : 1;
          shape[d] /= part;
          shape.insert(shape.begin() + d, part);
        }
        if (tensor.valid_reshape(shape.data(), static_cast<std::uint32_t>(shape.size()))) {
          tensor = tensor.reshape(shape.data(), static_cast<std::uint32_t>(shape.size()));
        }
      }
    }
  }
  return tensor;
}

// The bytes that a view touches, counted from the buffer's base.
inline std::set<std::uint64_t> bytes_of(const ChipTensor& tensor) {
  std::set<std::uint64_t> bytes;
  const std::uint64_t width = get_element_size(tensor.dtype);
  std::vector<std::uint32_t> index(tensor.ndims, 0);
  for (std::uint64_t left = tensor.numel(); left > 0; --left) {
    std::uint64_t element = tensor.start_offset;
    for (std::uint32_t d = 0; d < tensor.ndims; ++d) element += std::uint64_t{index[d]} * tensor.strides[d];
    for (std::uint64_t b = 0; b < width; ++b) bytes.insert(element * width + b);
    for (std::uint32_t d = tensor.ndims; d-- > 0 && ++index[d] == tensor.shapes[d];) index[d] = 0;
  }
  return bytes;
}

}  // namespace simpler::test
