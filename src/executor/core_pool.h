// CorePool: which simulated cores are free.
//
// What      Single cores for tasks of one lane, and sets of lanes of one cluster for blocks that need several at once.
//           While somebody waits for such a set, single cores are held back, but for one each time a set was granted: so
//           neither starves the other. (grant_single is for kernels that hold cores and wait for a task that is held back.)
// Threads   Any. One lock; workers keep a single core from task to task, so it is off the steady path.
// Order     acquire and release hand a core's contents from one worker to the next.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/check.h"
#include "executor/arch_profile.h"
#include "executor/core.h"

namespace simpler::executor {

constexpr int kLanes = 1 + kVectorLanes;  // of a cluster: AIC, AIV0, AIV1

class CorePool {
 public:
  explicit CorePool(int clusters)
      : clusters_(clusters),
        shared_(std::make_unique<ClusterMemory[]>(static_cast<std::size_t>(clusters * kBlocksAtOnce))),
        cores_(std::make_unique<Core[]>(static_cast<std::size_t>(clusters * kLanes))) {
    // Blocked numbering, as on the board: AIC of cluster c is c, its AIVs are clusters + 2c and clusters + 2c + 1.
    for (int c = 0; c < clusters; ++c) {
      at(c, 0).place(CoreType::AIC, c, c, 0);
      for (int v = 0; v < kVectorLanes; ++v) at(c, 1 + v).place(CoreType::AIV, clusters + kVectorLanes * c + v, c, v);
    }
    for (std::uint64_t& lane : free_) lane = clusters == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << clusters) - 1;
    publish();
  }

  int clusters() const { return clusters_; }
  int core_count() const { return clusters_ * kLanes; }

  // A core for a task of one lane; nullptr if none is free or they are held back.
  Core* acquire(CoreType type) {
    const std::lock_guard lock(mutex_);
    if (held_back_ && single_grants_ == 0) return nullptr;
    for (int lane = first_lane(type); lane <= last_lane(type); ++lane) {
      if (free_[lane] == 0) continue;
      if (held_back_) --single_grants_;
      Core& core = take(lane);
      publish();
      return &core;
    }
    return nullptr;
  }

  // The lanes of `mask` (bit 0: AIC, 1: AIV0, 2: AIV1) in one cluster, by lane; false if no cluster has them all free.
  bool acquire_lanes(std::uint8_t mask, Core* (&cores)[kLanes]) {
    const std::lock_guard lock(mutex_);
    std::uint64_t candidates = ~std::uint64_t{0};
    for (int lane = 0; lane < kLanes; ++lane) {
      if (mask >> lane & 1) candidates &= free_[lane];
    }
    if (candidates == 0) return false;
    const int cluster = __builtin_ctzll(candidates);
    for (int lane = 0; lane < kLanes; ++lane) {
      cores[lane] = nullptr;
      if ((mask >> lane & 1) == 0) continue;
      free_[lane] &= ~(std::uint64_t{1} << cluster);
      cores[lane] = &at(cluster, lane);
    }
    if ((mask & (mask - 1)) != 0) share(cluster, cores);
    single_grants_ = 1;
    publish();
    return true;
  }
  // The same for a single vector core, whichever lane it is.
  bool acquire_vector(Core** core) {
    const std::lock_guard lock(mutex_);
    for (int lane = 1; lane < kLanes; ++lane) {
      if (free_[lane] == 0) continue;
      *core = &take(lane);
      single_grants_ = 1;
      publish();
      return true;
    }
    return false;
  }

  void release(Core* core) {
    const std::lock_guard lock(mutex_);
    free_[lane_of(*core)] |= std::uint64_t{1} << core->cluster();
    core->share(nullptr);
    publish();
  }

  // How many sets of these lanes are free; of vector cores if `any_vector`.
  int count_free(std::uint8_t mask, bool any_vector) const {
    const std::lock_guard lock(mutex_);
    if (any_vector) return __builtin_popcountll(free_[1]) + __builtin_popcountll(free_[2]);
    std::uint64_t candidates = ~std::uint64_t{0};
    for (int lane = 0; lane < kLanes; ++lane) {
      if (mask >> lane & 1) candidates &= free_[lane];
    }
    return __builtin_popcountll(candidates);
  }

  void hold_back(bool on) {
    const std::lock_guard lock(mutex_);
    held_back_ = on;
    publish();
  }
  // Lets one single core go although they are held back.
  void grant_single() {
    const std::lock_guard lock(mutex_);
    single_grants_ = 1;
    publish();
  }
  bool held_back() const { return held_back_hint_.load(std::memory_order_relaxed); }

  // A hint; acquire() decides.
  bool any_free(CoreType type) const { return available_[static_cast<int>(type)].load(std::memory_order_relaxed); }

 private:
  // A block of several lanes may start while a lane of the one before is still running, in the lanes that have ended.
  static constexpr int kBlocksAtOnce = 2;

  void share(int cluster, Core* (&cores)[kLanes]) {
    for (int i = 0; i < kBlocksAtOnce; ++i) {
      ClusterMemory* memory = &shared_[cluster * kBlocksAtOnce + i];
      bool used = false;
      for (int lane = 0; lane < kLanes; ++lane) used = used || at(cluster, lane).shares(memory);
      if (used) continue;
      memory->begin_block();
      for (Core* core : cores) {
        if (core != nullptr) core->share(memory);
      }
      return;
    }
    SIMPLER_CHECK(false, "cluster %d runs three blocks of several lanes", cluster);
  }
  static int first_lane(CoreType type) { return type == CoreType::AIC ? 0 : 1; }
  static int last_lane(CoreType type) { return type == CoreType::AIC ? 0 : kVectorLanes; }
  static int lane_of(const Core& core) { return core.type() == CoreType::AIC ? 0 : 1 + core.lane(); }
  Core& at(int cluster, int lane) { return cores_[static_cast<std::size_t>(cluster * kLanes + lane)]; }
  Core& take(int lane) {
    const int cluster = __builtin_ctzll(free_[lane]);
    free_[lane] &= free_[lane] - 1;
    return at(cluster, lane);
  }
  void publish() {
    const bool open = !held_back_ || single_grants_ > 0;
    available_[0].store(open && free_[0] != 0, std::memory_order_relaxed);
    available_[1].store(open && (free_[1] | free_[2]) != 0, std::memory_order_relaxed);
    held_back_hint_.store(held_back_, std::memory_order_relaxed);
  }

  const int clusters_;
  const std::unique_ptr<ClusterMemory[]> shared_;
  const std::unique_ptr<Core[]> cores_;
  mutable std::mutex mutex_;
  std::uint64_t free_[kLanes];  // bit c: that lane of cluster c is free
  bool held_back_ = false;
  int single_grants_ = 0;  // single cores that may be given out although they are held back
  std::atomic<bool> available_[2];
  std::atomic<bool> held_back_hint_{false};
};

}  // namespace simpler::executor
