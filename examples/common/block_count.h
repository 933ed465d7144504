// Block counts of SPMD tasks, for orchestrations of every chip and runtime: the streaming one calls them core counts on
// the a5.
#pragma once
#include "pto_orchestration_api.h"

inline void set_blocks(CoreTaskArgs& task, uint32_t count) {
#if defined(SIMPLER_ARCH_A5) && defined(SIMPLER_RUNTIME_STREAMING)
  task.launch_spec.set_core_num(static_cast<int16_t>(count));
#else
  task.launch_spec.set_block_num(static_cast<int16_t>(count));
#endif
}
