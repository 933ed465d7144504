// Does nothing: what is left is the runtime's own work.
#include "tensor.h"

extern "C" __attribute__((visibility("default"))) void kernel_entry(int64_t*) {}
