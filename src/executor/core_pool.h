// CorePool: which simulated cores are free.
//
// Threads   Any. One lock; workers keep a core from task to task, so it is off the steady path.
// Order     acquire/release hand a core's contents from one worker to the next.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "executor/arch_profile.h"
#include "executor/core.h"

namespace simpler::executor {

class CorePool {
 public:
  explicit CorePool(int clusters) : clusters_(clusters), cores_(std::make_unique<Core[]>(core_count())) {
    // Blocked numbering, as on the board: AIC of cluster c is c, its AIVs are clusters + 2c and clusters + 2c + 1.
    for (int c = 0; c < clusters; ++c) cores_[c].place(CoreType::AIC, c, c, 0);
    for (int v = 0; v < kVectorLanes * clusters; ++v) {
      cores_[clusters + v].place(CoreType::AIV, clusters + v, v / kVectorLanes, v % kVectorLanes);
    }
    // Taken from the back: low numbers first.
    for (int i = core_count(); i-- > 0;) free_[type_index(cores_[i].type())].push_back(&cores_[i]);
    for (int t = 0; t < 2; ++t) free_count_[t].store(static_cast<int>(free_[t].size()), std::memory_order_relaxed);
  }

  int clusters() const { return clusters_; }
  int core_count() const { return clusters_ * (1 + kVectorLanes); }

  // nullptr if none of that type is free.
  Core* acquire(CoreType type) {
    const std::lock_guard lock(mutex_);
    std::vector<Core*>& list = free_[type_index(type)];
    if (list.empty()) return nullptr;
    Core* core = list.back();
    list.pop_back();
    free_count_[type_index(type)].store(static_cast<int>(list.size()), std::memory_order_relaxed);
    return core;
  }
  void release(Core* core) {
    const std::lock_guard lock(mutex_);
    std::vector<Core*>& list = free_[type_index(core->type())];
    list.push_back(core);
    free_count_[type_index(core->type())].store(static_cast<int>(list.size()), std::memory_order_relaxed);
  }
  // A hint; acquire() decides.
  bool any_free(CoreType type) const { return free_count_[type_index(type)].load(std::memory_order_relaxed) > 0; }

 private:
  static int type_index(CoreType type) { return static_cast<int>(type); }

  const int clusters_;
  const std::unique_ptr<Core[]> cores_;
  std::mutex mutex_;
  std::vector<Core*> free_[2];
  std::atomic<int> free_count_[2];
};

}  // namespace simpler::executor
