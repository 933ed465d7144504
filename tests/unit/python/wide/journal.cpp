// Notes that a lane of a block ran, then waits until all lanes that run together have. Tensors: table int32 [rows][3]:
// visits, blocks of the task, sub block id; arrivals int32 [1]. Scalars: arrivals when all have met, lanes of a block.
// Row: 3 * block + lane (0 AIC, 1 AIV0 or the only vector lane, 2 AIV1).
#include <sched.h>

#include "intrinsic.h"
#include "tensor.h"

extern "C" __attribute__((visibility("default"))) void kernel_entry(int64_t* args) {
  const ChipTensor* tensors[] = {reinterpret_cast<ChipTensor*>(args[0]), reinterpret_cast<ChipTensor*>(args[1])};
  int32_t* table = tensors[0]->data_as<int32_t>() + tensors[0]->start_offset;
  int32_t* arrivals = tensors[1]->data_as<int32_t>() + tensors[1]->start_offset;
#if defined(__DAV_CUBE__)
  const int lane = 0;
#else
  const int lane = args[3] == 1 ? 1 : 1 + get_sub_block_id(args);
#endif
  int32_t* row = table + 3 * (3 * get_block_idx(args) + lane);
  row[0] += 1;
  row[1] = get_block_num(args);
  row[2] = lane == 0 ? 0 : get_sub_block_id(args);
  __atomic_fetch_add(arrivals, 1, __ATOMIC_ACQ_REL);
  while (__atomic_load_n(arrivals, __ATOMIC_ACQUIRE) < args[2]) sched_yield();
}
