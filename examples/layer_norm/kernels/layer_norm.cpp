// Layer norm of kRows rows, on a vector core. Tensors: x, gamma, beta (read), y (written). Block i has rows from
// i * kRows on.
#include <pto/pto-inst.hpp>

#include "intrinsic.h"
#include "pipe_sync.h"
#include "tensor.h"

namespace {

constexpr int kRows = 16, kColumns = 256;  // as in layer_norm_orch.cpp
constexpr int kBytes = kRows * kColumns * sizeof(float);
constexpr float kEpsilon = 1e-5f;

using Values = pto::Tile<pto::TileType::Vec, float, kRows, kColumns>;
using PerColumn = pto::Tile<pto::TileType::Vec, float, 1, kColumns>;
// One value per row, as a column for the instructions along rows, and the same bytes as a row for arithmetic.
using PerRow = pto::Tile<pto::TileType::Vec, float, kRows, 1, pto::BLayout::ColMajor>;
using PerRowFlat = pto::Tile<pto::TileType::Vec, float, 1, kRows>;

using Matrix = pto::GlobalTensor<float, pto::Shape<1, 1, 1, kRows, kColumns>, pto::Stride<1, 1, 1, kColumns, 1>>;
using Row = pto::GlobalTensor<float, pto::Shape<1, 1, 1, 1, kColumns>, pto::Stride<1, 1, 1, kColumns, 1>>;

__aicore__ __gm__ float* address(int64_t argument) {
  __gm__ ChipTensor* tensor = reinterpret_cast<__gm__ ChipTensor*>(argument);
  return tensor->data_as<float>() + tensor->start_offset;
}

}  // namespace

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  const int first = get_block_idx(args) * kRows * kColumns;
  Values x, scratch, squares;
  PerColumn gamma, beta;
  PerRow mean, spread;
  PerRowFlat flat_mean, flat_spread;
  TASSIGN(x, 0);
  TASSIGN(scratch, kBytes);
  TASSIGN(squares, 2 * kBytes);
  TASSIGN(gamma, 3 * kBytes);
  TASSIGN(beta, 3 * kBytes + 0x400);
  TASSIGN(mean, 3 * kBytes + 0x800);
  TASSIGN(spread, 3 * kBytes + 0x900);
  TRESHAPE(flat_mean, mean);
  TRESHAPE(flat_spread, spread);

  TLOAD(x, Matrix(address(args[0]) + first));
  TLOAD(gamma, Row(address(args[1])));
  TLOAD(beta, Row(address(args[2])));
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);

  TROWSUM(mean, x, scratch);
  pipe_barrier(PIPE_V);
  TMULS(flat_mean, flat_mean, 1.0f / kColumns);
  pipe_barrier(PIPE_V);
  TROWEXPANDSUB(x, x, mean);
  pipe_barrier(PIPE_V);
  TMUL(squares, x, x);  // of the differences: the difference of the squares' mean and the mean's square cancels
  pipe_barrier(PIPE_V);
  TROWSUM(spread, squares, scratch);
  pipe_barrier(PIPE_V);
  TMULS(flat_spread, flat_spread, 1.0f / kColumns);
  pipe_barrier(PIPE_V);
  TADDS(flat_spread, flat_spread, kEpsilon);
  pipe_barrier(PIPE_V);
  TSQRT(flat_spread, flat_spread);
  pipe_barrier(PIPE_V);
  TROWEXPANDDIV(x, x, spread);
  pipe_barrier(PIPE_V);
  TCOLEXPANDMUL(x, x, gamma);
  pipe_barrier(PIPE_V);
  TCOLEXPANDADD(x, x, beta);

  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(Matrix(address(args[3]) + first), x);
  pipe_sync();
}
