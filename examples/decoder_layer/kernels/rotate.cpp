// Rotary position embedding of one head, on a vector core: the first half of the features turns into the second by an
// angle for each pair. Tensors: in [kBatch][kFeatures], cosine, sine [kFeatures / 2] (read), out: a tile, or a plane of the
// cache (written). Scalar: position in the plane, or 0.
#include "decoder.h"

using namespace pto;

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  constexpr int kHalf = kFeatures / 2, kBytes = kBatch * kHalf * sizeof(float);
  __gm__ ChipTensor* in = tensor_of(args[0]);
  __gm__ ChipTensor* out = tensor_of(args[3]);
  const uint64_t first = static_cast<uint64_t>(args[4]) * kFeatures;
  Tile<TileType::Vec, float, kBatch, kHalf> low, high, low_turned, high_turned;
  Tile<TileType::Vec, float, 1, kHalf> cosine, sine;
  TASSIGN(low, 0);
  TASSIGN(high, kBytes);
  TASSIGN(low_turned, 2 * kBytes);
  TASSIGN(high_turned, 3 * kBytes);
  TASSIGN(cosine, 4 * kBytes);
  TASSIGN(sine, 4 * kBytes + 0x100);

  const int in_stride = static_cast<int>(in->strides[0]), out_stride = static_cast<int>(out->strides[0]);
  TLOAD(low, part<kBatch, kHalf>(in, 0, in_stride));
  TLOAD(high, part<kBatch, kHalf>(in, kHalf, in_stride));
  TLOAD(cosine, part<1, kHalf>(tensor_of(args[1]), 0, kHalf));
  TLOAD(sine, part<1, kHalf>(tensor_of(args[2]), 0, kHalf));
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TCOLEXPANDMUL(low_turned, high, sine);
  TCOLEXPANDMUL(high_turned, low, sine);
  TCOLEXPANDMUL(low, low, cosine);
  TCOLEXPANDMUL(high, high, cosine);
  pipe_barrier(PIPE_V);
  TSUB(low, low, low_turned);
  TADD(high, high, high_turned);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(part<kBatch, kHalf>(out, first, out_stride), low);
  TSTORE(part<kBatch, kHalf>(out, first + kHalf, out_stride), high);
  pipe_sync();
}
