#include "frontend/streaming/streaming_runtime.h"

namespace simpler::frontend {

using abi::ErrorCode;
using graph::Resource;
using graph::Shortage;

namespace {

constexpr std::uint32_t kReclaimAhead = 16;  // tasks that a blocked submitter lets finish before it looks again

}  // namespace

// Waits until the rings are empty, since all scopes are closed.
void StreamingRuntime::finish_tasks() {
  while (!latch_.raised()) {
    graph_.reclaim_all();
    if (graph_.all_reclaimed()) return;
    for (int ring = 0; ring < graph::kRings; ++ring) {
      std::uint32_t slot;
      if (!graph_.oldest_pending(ring, UINT32_MAX, &slot)) continue;
      executor_.wait_for(slot, Clock::now() + kForever, [&] { return graph_.reclaimable(slot); });
      break;
    }
  }
}

// Nothing that the submitter waits for can happen before it closes a scope, and it cannot: it waits here.
bool StreamingRuntime::hopeless(const Shortage& shortage) const {
  if (shortage.resource != Resource::kRegions) return graph_.held_by_open_scope(shortage.ring);
  for (int ring = 0; ring < graph::kRings; ++ring) {
    std::uint32_t slot;
    if (graph_.oldest_pending(ring, 0, &slot)) return false;
  }
  return true;
}

bool StreamingRuntime::make_room(const Shortage& shortage, Clock::time_point* last_progress) {
  const auto now = Clock::now();
  if (*last_progress == Clock::time_point{}) *last_progress = now;
  if (graph_.reclaim_all()) {
    *last_progress = now;
    return true;
  }
  if (hopeless(shortage)) {
    fail(shortage, "its oldest task belongs to an open scope, so nothing can be given back");
    return false;
  }
  if (now - *last_progress > kNoProgressLimit && !executor_.active()) {
    fail(shortage, "nothing was given back for 500 ms and no task is ready or running");
    return false;
  }
  for (int i = 0; i < graph::kRings; ++i) {
    const int ring = (shortage.ring + i) % graph::kRings;
    std::uint32_t slot;
    if (!graph_.oldest_pending(ring, kReclaimAhead, &slot)) continue;
    executor_.wait_for(slot, now + kNoProgressLimit, [&] { return graph_.reclaimable(slot); });
    break;
  }
  return true;
}

// Waits for the tasks that write the tensor; before a write also for those that read it.
bool StreamingRuntime::settle(const ChipTensor& tensor, bool write, const char* call) {
  graph_.find_accessors(tensor, write, &accessors_);
  const auto deadline = Clock::now() + kElementWaitLimit;
  for (const PTO2TaskId id : accessors_) {
    while (!graph_.is_complete(id)) {
      if (latch_.raised()) return false;
      if (Clock::now() >= deadline) {
        latch_.raise(ErrorCode::TENSOR_WAIT_TIMEOUT, "%s waited %lld s for task %u of ring %u, which %s the tensor",
                     call, static_cast<long long>(kElementWaitLimit.count()), id.local(), id.ring(),
                     write ? "accesses" : "writes");
        return false;
      }
      executor_.wait_for(graph_.slot_of(id), deadline, [&] { return graph_.is_complete(id); });
    }
  }
  return !latch_.raised();
}

}  // namespace simpler::frontend
