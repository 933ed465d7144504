// SYNCALL: a barrier of all cores of a task, through a word of global memory.
//
// What      The workspace has at least three 32-bit words, zero before its first use; it may be used again and again, by
//           one task at a time. Stores before the barrier are seen by every core behind it.
// Waiting   All blocks of the task have to run at once: the task needs a synchronised start, or no more blocks than
//           there are cores. A stand-alone program has tasks of one core, which never wait.
#pragma once

#include "global.hpp"

namespace pto {

enum class SyncAllMode { Soft, Hard };              // through memory, or through signals between cores
enum class SyncCoreType { AIVOnly, AICOnly, Mix };  // the cores that meet

namespace tile_detail {

inline void meet(uint32_t* arrived, uint32_t cores) {
  const uint32_t ticket = __atomic_fetch_add(arrived, 1u, __ATOMIC_SEQ_CST);
  const uint32_t all = (ticket / cores + 1) * cores;
  wake(arrived);
  Waiter waiter;
  for (;;) {
    const uint32_t seen = __atomic_load_n(arrived, __ATOMIC_SEQ_CST);
    if (static_cast<int32_t>(seen - all) >= 0) return;
    waiter.wait(arrived, seen);
  }
}

}  // namespace tile_detail

// The workspace is a global tensor or a pointer; staging tiles and a number of cores may follow and are not needed.
template <SyncAllMode kMode, SyncCoreType kCores, class Workspace, class... Staging>
PTO_INLINE RecordEvent SYNCALL(Workspace&& workspace, Staging&&...) {
  using namespace tile_detail;
  static_assert(kMode == SyncAllMode::Soft,
                "SYNCALL: only SyncAllMode::Soft, with a workspace in global memory, is available");
  constexpr uint32_t kKinds = kCores == SyncCoreType::Mix       ? SIMPLER_TASK_CUBE_CORES | SIMPLER_TASK_VECTOR_CORES
                              : kCores == SyncCoreType::AICOnly ? SIMPLER_TASK_CUBE_CORES
                                                                : SIMPLER_TASK_VECTOR_CORES;
  uint32_t* words = nullptr;
  if constexpr (kIsGlobal<typename std::remove_reference<Workspace>::type>)
    words = reinterpret_cast<uint32_t*>(workspace.data());
  else
    words = reinterpret_cast<uint32_t*>(workspace);
  if (words == nullptr) fail("SYNCALL: the workspace has a null address");
  const uint32_t cores = sim_state.hooks.task_cores != nullptr ? sim_state.hooks.task_cores(kKinds) : 1;
  if (cores > 1) meet(words + static_cast<int>(kCores), cores);  // a counter for each kind of meeting
  order_memory();
  return {};
}

}  // namespace pto
