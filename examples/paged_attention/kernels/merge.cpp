// Adds a page to what the pages before have given, on a vector core; whatever has the lower maximum is scaled down.
// Tensors: total [kQueries][kFeatures], highest, sum [kQueries] (read and written), part, part_highest, part_sum (read),
// out [kQueries][kFeatures] (written: total / sum, which the last page makes right).
#include "page.h"

using namespace pto;

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  Tile<TileType::Vec, float, kQueries, kFeatures> total, part;
  PerQuery scale, part_scale, sum;
  PerQueryFlat flat_scale, flat_part_scale, flat_sum, part_sum, both_highest;
  TASSIGN(total, 0);
  TASSIGN(part, kTileBytes);
  TASSIGN(scale, 2 * kTileBytes);
  TASSIGN(part_scale, 2 * kTileBytes + 0x100);
  TASSIGN(sum, 2 * kTileBytes + 0x200);
  TASSIGN(part_sum, 2 * kTileBytes + 0x300);
  TASSIGN(both_highest, 2 * kTileBytes + 0x400);
  TRESHAPE(flat_scale, scale);
  TRESHAPE(flat_part_scale, part_scale);
  TRESHAPE(flat_sum, sum);

  TLOAD(total, Memory<kQueries, kFeatures>(address(args[0])));
  TLOAD(flat_scale, Memory<1, kQueries>(address(args[1])));
  TLOAD(flat_sum, Memory<1, kQueries>(address(args[2])));
  TLOAD(part, Memory<kQueries, kFeatures>(address(args[3])));
  TLOAD(flat_part_scale, Memory<1, kQueries>(address(args[4])));
  TLOAD(part_sum, Memory<1, kQueries>(address(args[5])));
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TMAX(both_highest, flat_scale, flat_part_scale);
  pipe_barrier(PIPE_V);
  TSUB(flat_scale, flat_scale, both_highest);  // before the first page: minus infinity, so that its factor is 0
  TSUB(flat_part_scale, flat_part_scale, both_highest);
  pipe_barrier(PIPE_V);
  TEXP(flat_scale, flat_scale);
  TEXP(flat_part_scale, flat_part_scale);
  pipe_barrier(PIPE_V);
  TMUL(flat_sum, flat_sum, flat_scale);
  TMUL(part_sum, part_sum, flat_part_scale);
  TROWEXPANDMUL(total, total, scale);
  TROWEXPANDMUL(part, part, part_scale);
  pipe_barrier(PIPE_V);
  TADD(flat_sum, flat_sum, part_sum);
  TADD(total, total, part);
  pipe_barrier(PIPE_V);
  TROWEXPANDDIV(part, total, sum);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(Memory<kQueries, kFeatures>(address(args[0])), total);
  TSTORE(Memory<1, kQueries>(address(args[1])), both_highest);
  TSTORE(Memory<1, kQueries>(address(args[2])), flat_sum);
  TSTORE(Memory<kQueries, kFeatures>(address(args[6])), part);
  pipe_sync();
}
