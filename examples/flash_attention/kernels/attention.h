// What the three cores of a block agree on. A block computes kQueries rows of one head:
// out = softmax(q k^T / sqrt(kFeatures) + mask) v, over the keys in steps of kKeys, without ever holding all scores.
// Tensors: q, k, v [heads][length][kFeatures], mask [kQueries][kKeys] (read), out [heads][length][kFeatures] (written),
// slots (scratch); floats. Scalars: length, 1 for causal attention.
#pragma once
#include <pto/common/fifo.hpp>
#include <pto/pto-inst.hpp>

#include "intrinsic.h"
#include "pipe_sync.h"
#include "tensor.h"

constexpr int kQueries = 64, kKeys = 64, kFeatures = 64;
constexpr int kLaneQueries = kQueries / 2;  // a vector core has the upper or the lower half
constexpr float kScale = 0.125f;            // 1 / sqrt(kFeatures)

// Scores go to the vector cores, probabilities come back, partial results follow. Two slots each, in global memory.
constexpr int kScoreBytes = kQueries * kKeys * sizeof(float), kResultBytes = kQueries * kFeatures * sizeof(float);
using Scores = pto::TPipe<0, pto::Direction::DIR_C2V, kScoreBytes, 2>;
using Probabilities = pto::TPipe<2, pto::Direction::DIR_V2C, kScoreBytes, 2>;
using Results = pto::TPipe<4, pto::Direction::DIR_C2V, kResultBytes, 2>;
constexpr int kSlotFloats =
    (4 * kScoreBytes + 2 * kResultBytes) / sizeof(float);  // of one block; as in the orchestration

template <int kRows, int kColumns> using Memory =
    pto::GlobalTensor<float, pto::Shape<1, 1, 1, kRows, kColumns>, pto::Stride<1, 1, 1, kColumns, 1>>;

struct Block {
  __gm__ float *q, *k, *v, *mask, *out, *slots;
  int steps;    // of kKeys keys
  bool causal;  // then the last step is the one that the mask is for, and later keys are left out

  static __aicore__ Block of(__gm__ int64_t* args) {
    const int length = static_cast<int>(args[6]), index = get_block_idx(args), per_head = length / kQueries;
    const int head = index / per_head, part = index % per_head;
    const int rows = (head * per_head + part) * kQueries * kFeatures, keys = head * length * kFeatures;
    const bool causal = args[7] != 0;
    return {address(args[0]) + rows,      address(args[1]) + keys,
            address(args[2]) + keys,      address(args[3]),
            address(args[4]) + rows,      address(args[5]) + index * kSlotFloats,
            causal ? part + 1 : per_head, causal};
  }
  static __aicore__ __gm__ float* address(int64_t argument) {
    __gm__ ChipTensor* tensor = reinterpret_cast<__gm__ ChipTensor*>(argument);
    return tensor->data_as<float>() + tensor->start_offset;
  }
};
// The pipes of a block; where popped tiles without an address go: vector memory, matrix memory.
#define DECLARE_PIPES(block)                                                                \
  Scores scores(block.slots, 0x20000, 0x0);                                                 \
  Probabilities probabilities(block.slots + 2 * kScoreBytes / sizeof(float), 0x0, 0x20000); \
  Results results(block.slots + 4 * kScoreBytes / sizeof(float), 0x28000, 0x0)
