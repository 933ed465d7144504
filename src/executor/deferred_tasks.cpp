#include "executor/deferred_tasks.h"

#include <algorithm>

#include "base/status.h"
#include "common/completion_types.h"
#include "executor/crash_guard.h"

namespace simpler::executor {

using abi::ErrorCode;

DeferredTasks::Refusal DeferredTasks::check(const DeferredCompletionEntry& entry, std::uint32_t index) {
  const auto refuse = [&](const char* what) {
    return Refusal{ErrorCode::ASYNC_COMPLETION_INVALID,
                   format("completion condition %u (address 0x%llx, type %d, cookie %llu) %s", index,
                          static_cast<unsigned long long>(entry.addr), entry.completion_type,
                          static_cast<unsigned long long>(entry.backend_cookie), what)};
  };
  if (entry.addr == 0) return refuse("has no address");
  switch (entry.completion_type) {
    case COMPLETION_TYPE_COUNTER:
      if (entry.addr % 4 != 0) return refuse("has a counter that is not 4-byte aligned");
      return {};
    case COMPLETION_TYPE_SDMA_EVENT_RECORD:
      if (entry.backend_cookie == 0) return refuse("waits for the DMA event with id 0; ids start at 1");
      if (entry.addr % 8 != 0) return refuse("has a DMA record that is not 8-byte aligned");
      return {};
    case COMPLETION_TYPE_URMA_EVENT_HANDLE: return refuse("waits for URMA, which this device does not have");
    default: return refuse("has an unknown type: use COMPLETION_TYPE_COUNTER (0)");
  }
}

bool DeferredTasks::holds(const DeferredCompletionEntry& entry) {
  if (entry.completion_type == COMPLETION_TYPE_COUNTER) {
    return __atomic_load_n(reinterpret_cast<const std::uint32_t*>(entry.addr), __ATOMIC_ACQUIRE) >=
           entry.expected_value;
  }
  // A DMA record counts completed posts up.
  return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(entry.addr), __ATOMIC_ACQUIRE) >= entry.backend_cookie;
}

// Drops the conditions that hold.
bool DeferredTasks::due(Waiting& waiting) {
  if (lost_) return false;
  auto& conditions = waiting.conditions;
  for (std::size_t i = 0; i < conditions.size();) {
    bool met = false;
    if (CrashGuard::call([&] { met = holds(conditions[i]); }) != 0) {
      lost_ = Lost{waiting.task, conditions[i].addr};
      return false;
    }
    if (met) {
      conditions[i] = conditions.back();
      conditions.pop_back();
    } else {
      ++i;
    }
  }
  return conditions.empty();
}

DeferredTasks::Refusal DeferredTasks::hold(graph::Task& task, graph::RecordRef record, DeferredCompletionSlab& slab) {
  const std::uint32_t count = slab.count;
  const std::int32_t error = slab.error_code;
  slab.count = 0;
  slab.error_code = 0;
  if (error != 0) {
    return {static_cast<ErrorCode>(error),
            format("the kernel reported it with defer_error, with %u of at most %zu completion conditions registered",
                   count, kMaxConditions)};
  }
  if (count > kMaxConditions) {
    return {ErrorCode::ASYNC_REGISTRATION_FAILED,
            format("%u completion conditions are more than the slab's %zu", count, kMaxConditions)};
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const DeferredCompletionEntry& entry = slab.entries[i];
    if (Refusal refusal = check(entry, i); !refusal.text.empty()) return refusal;
    if (CrashGuard::call([&] { static_cast<void>(holds(entry)); }) != 0) {
      return {ErrorCode::ASYNC_COMPLETION_INVALID,
              format("completion condition %u is at 0x%llx, which is not readable memory", i,
                     static_cast<unsigned long long>(entry.addr))};
    }
  }
  const std::lock_guard lock(mutex_);
  auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& w) { return w.record == record; });
  if (found == waiting_.end()) {
    if (waiting_.size() >= kMaxTasks)
      return {ErrorCode::ASYNC_WAIT_OVERFLOW, "64 tasks wait for completion conditions, and a 65th does not fit"};
    task.blocks_left.fetch_add(1, std::memory_order_relaxed);  // the caller's block is unreported: it cannot be 0
    waiting_.push_back({record, task.id, {}});
    found = waiting_.end() - 1;
    count_.store(static_cast<std::uint32_t>(waiting_.size()), std::memory_order_relaxed);
  }
  if (found->conditions.size() + count > kMaxConditions) {
    return {ErrorCode::ASYNC_REGISTRATION_FAILED,
            format("the blocks of the task registered %zu, more than 64 completion conditions",
                   found->conditions.size() + count)};
  }
  found->conditions.insert(found->conditions.end(), slab.entries, slab.entries + count);
  return {};
}

bool DeferredTasks::any_due() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock.owns_lock() &&
         (std::any_of(waiting_.begin(), waiting_.end(), [this](Waiting& waiting) { return due(waiting); }) || lost_);
}

std::optional<DeferredTasks::Lost> DeferredTasks::lost() {
  const std::lock_guard lock(mutex_);
  return lost_;
}

std::size_t DeferredTasks::take_due(graph::RecordRef* records, std::size_t most) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return 0;  // somebody else is looking
  std::size_t taken = 0;
  for (std::size_t i = 0; i < waiting_.size() && taken < most;) {
    if (!due(waiting_[i])) {
      ++i;
      continue;
    }
    records[taken++] = waiting_[i].record;
    waiting_[i] = std::move(waiting_.back());
    waiting_.pop_back();
  }
  count_.store(static_cast<std::uint32_t>(waiting_.size()), std::memory_order_relaxed);
  return taken;
}

PTO2TaskId DeferredTasks::first() {
  const std::lock_guard lock(mutex_);
  return waiting_.empty() ? PTO2TaskId::invalid() : waiting_.front().task;
}

void DeferredTasks::clear() {
  const std::lock_guard lock(mutex_);
  waiting_.clear();
  lost_.reset();
  count_.store(0, std::memory_order_relaxed);
}

}  // namespace simpler::executor
