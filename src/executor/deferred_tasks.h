// DeferredTasks: tasks whose kernels have returned, but which are over only when conditions in memory hold.
//
// What      A kernel leaves conditions in its core's slab; hold() takes them over and counts, in the task's blocks_left, as
//           one more block that has not finished. Whoever polls takes out the tasks whose conditions all hold. Memory that
//           disappears while a task waits for it is noticed: lost() then tells.
// Limits    64 tasks at once and 64 conditions per task; see error codes 101 to 103.
// Threads   Any. count() is a relaxed read, so that runs without deferred tasks pay nothing.
// Order     A condition is read with acquire: what was written before the counter is visible to the task's consumers.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "abi/error_codes.h"
#include "graph/task.h"
#include "intrinsic.h"

namespace simpler::executor {

class DeferredTasks {
 public:
  static constexpr std::size_t kMaxTasks = 64;
  static constexpr std::size_t kMaxConditions = MAX_COMPLETIONS_PER_TASK;

  struct Refusal {
    abi::ErrorCode code = abi::ErrorCode::NONE;
    std::string text;
  };
  // A condition that can not be looked at any more.
  struct Lost {
    PTO2TaskId task;
    std::uint64_t address;
  };

  // Takes the conditions out of the slab. The caller has not reported the block yet.
  Refusal hold(graph::Task& task, graph::RecordRef record, DeferredCompletionSlab& slab);

  std::uint32_t count() const { return count_.load(std::memory_order_relaxed); }
  // Whether take_due() or lost() would find something.
  bool any_due();
  std::optional<Lost> lost();
  // Up to `most` tasks whose conditions hold; each is one block to report.
  std::size_t take_due(graph::RecordRef* records, std::size_t most);
  // One of the tasks that wait; invalid if there is none.
  PTO2TaskId first();
  void clear();

 private:
  struct Waiting {
    graph::RecordRef record;
    PTO2TaskId task;
    std::vector<DeferredCompletionEntry> conditions;  // those that did not hold yet
  };
  static Refusal check(const DeferredCompletionEntry& entry, std::uint32_t index);
  static bool holds(const DeferredCompletionEntry& entry);
  bool due(Waiting& waiting);

  std::mutex mutex_;
  std::vector<Waiting> waiting_;
  std::optional<Lost> lost_;  // the first one; from then on nobody looks at conditions
  std::atomic<std::uint32_t> count_{0};
};

}  // namespace simpler::executor
