// Keeps its core until the orchestration opens the gate. Tensor: gate (one int32: 1 is open).
#include <time.h>

#include "tensor.h"

extern "C" __attribute__((visibility("default"))) void kernel_entry(int64_t* args) {
  const ChipTensor* tensor = reinterpret_cast<const ChipTensor*>(args[0]);
  const int32_t* gate = tensor->data_as<int32_t>() + tensor->start_offset;
  const timespec pause = {0, 100'000};  // asleep, so that the submission has a processor of its own
  while (__atomic_load_n(gate, __ATOMIC_ACQUIRE) == 0) nanosleep(&pause, nullptr);
}
