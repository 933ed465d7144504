// How many cores and control threads a run gets, and which control processors: pure functions of what is asked for and
// what there is.
#pragma once
#include <cstdint>

#include "abi/run_image.h"
#include "base/status.h"
#include "executor/arch_profile.h"

namespace simpler::host {

// 0, or 2 to the most that the chip has.
Status check_thread_count(int requested, const executor::ArchProfile& arch, const char* platform);

// Control threads that will work: what was requested, else the default, but no more than usable ones; less than asked for
// is said. -1: fewer than 2 are usable.
int resolve_thread_count(int requested, int usable, int standard);

// A run uses every cluster that a launch may use; -1 if there is none.
int resolve_blocks(int block_limit);

// Fills the shape. cpu_mask: bit n for control processor n that may be used; 0: not known, then any will do. Threads go
// to one group of four, the highest that can hold them all; if none can, to the lowest processors, which is said.
Status resolve_launch_shape(int requested_threads, int block_limit, std::uint64_t cpu_mask,
                            const executor::ArchProfile& arch, abi::LaunchShape* shape);

}  // namespace simpler::host
