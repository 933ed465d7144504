// Sizes that the orchestration and the kernels of the decoder agree on, and what kernels have in common. Floats throughout.
#pragma once
#include <cstdint>

constexpr int kBatch = 16;     // sequences that are decoded together
constexpr int kHidden = 512;   // features of a token
constexpr int kFeatures = 64;  // of a head, and the width of the tiles that matrices are cut into
constexpr int kHeads = kHidden / kFeatures;
constexpr int kInner = 1024;  // features inside the gated MLP
constexpr int kMost = 128;    // tokens that the key-value cache has room for

#if defined(__DAV_VEC__) || defined(__DAV_CUBE__)
#include <pto/pto-inst.hpp>

#include "intrinsic.h"
#include "pipe_sync.h"
#include "tensor.h"

template <int kRows, int kColumns> using Part =
    pto::GlobalTensor<float, pto::Shape<1, 1, 1, kRows, kColumns>, pto::Stride<1, 1, 1, pto::DYNAMIC, 1>>;

__aicore__ inline __gm__ ChipTensor* tensor_of(int64_t argument) {
  return reinterpret_cast<__gm__ ChipTensor*>(argument);
}
__aicore__ inline __gm__ float* address(__gm__ ChipTensor* tensor) {
  return tensor->data_as<float>() + tensor->start_offset;
}
// kRows x kColumns of a tensor whose rows lie `stride` floats apart, from an element on.
template <int kRows, int kColumns>
__aicore__ inline Part<kRows, kColumns> part(__gm__ ChipTensor* tensor, uint64_t first, int stride) {
  return Part<kRows, kColumns>(address(tensor) + first, {}, pto::Stride<1, 1, 1, pto::DYNAMIC, 1>(stride));
}
// The tile [kBatch][kFeatures] of a matrix, or of a cache plane [kBatch][1][kMost][kFeatures] at a position.
__aicore__ inline Part<kBatch, kFeatures> tile_of(__gm__ ChipTensor* tensor, int position = 0) {
  return part<kBatch, kFeatures>(tensor, static_cast<uint64_t>(position) * kFeatures,
                                 static_cast<int>(tensor->strides[0]));
}
#endif
