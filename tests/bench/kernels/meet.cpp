// A barrier of a cohort: arrives, then yields its processor until all lanes have. Tensor: arrivals (one int32); scalar:
// how many arrivals there are when all have met.
#include <sched.h>

#include "tensor.h"

extern "C" __attribute__((visibility("default"))) void kernel_entry(int64_t* args) {
  const ChipTensor* tensor = reinterpret_cast<const ChipTensor*>(args[0]);
  int32_t* arrivals = tensor->data_as<int32_t>() + tensor->start_offset;
  const auto all = static_cast<int32_t>(args[1]);
  __atomic_fetch_add(arrivals, 1, __ATOMIC_ACQ_REL);
  while (__atomic_load_n(arrivals, __ATOMIC_ACQUIRE) < all) sched_yield();
}
