// Ring sizes of a run: the run's configuration, else the environment, else the defaults; for each entry of its own.
#pragma once
#include "abi/call_config.h"

namespace simpler::host {

// PTO2_RING_TASK_WINDOW, PTO2_RING_HEAP, PTO2_RING_DEP_POOL: one number, or four separated by commas. A value that is not
// allowed is ignored with a warning. The result has no zeros.
abi::RuntimeEnv resolve_rings(const abi::RuntimeEnv& configured);

}  // namespace simpler::host
