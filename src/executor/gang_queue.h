// GangQueue: tasks whose blocks need several cores at once, placed first come, first served.
//
// What      A MIX block needs lanes of one cluster, and they may wait for each other. A cohort (sync_start) needs cores for
//           all its blocks before any of them starts. Placing reserves cores all or nothing; each placed lane is then run
//           by a thread of its own. The first task that does not fit holds back the cores that others free.
// Threads   Any; one lock, taken before the pool's.
// Lifetime  A task in here, or with a lane out, has a block that is not reported: it stays alive.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "executor/core_pool.h"
#include "graph/graph.h"

namespace simpler::executor {

// Lanes that must all have a thread before any of them starts.
class Rendezvous {
 public:
  explicit Rendezvous(int lanes) : missing_(lanes) {}
  void arrive_and_wait() {
    // seq_cst: as in WorkerGate::Bed::call.
    if (missing_.fetch_sub(1, std::memory_order_seq_cst) == 1) {
      missing_.notify_all();
      return;
    }
    for (int left = missing_.load(std::memory_order_acquire); left > 0;
         left = missing_.load(std::memory_order_acquire)) {
      missing_.wait(left, std::memory_order_acquire);
    }
  }
  // The run has failed: nobody waits for those who will not come.
  void abandon() {
    missing_.exchange(0, std::memory_order_seq_cst);
    missing_.notify_all();
  }

 private:
  std::atomic<int> missing_;
};

// One lane of one block, with its core.
struct Lane {
  graph::RecordRef record = graph::kNoRecord;
  std::int32_t block = 0;
  int kernel_lane = 0;  // index into Task::kernels
  Core* core = nullptr;
  std::shared_ptr<Rendezvous> rendezvous;  // of a cohort
};

class GangQueue {
 public:
  explicit GangQueue(CorePool& cores) : cores_(cores) {}

  // Takes a ready task over and places what fits. Returns the number of lanes placed.
  int admit(const graph::Graph& graph, graph::RecordRef record);
  // A lane to run; false if there is none.
  bool take(Lane* lane);
  // The lane has ended: its core is free. Returns the number of lanes that could be placed.
  int finish(const graph::Graph& graph, Core* core);
  // A single core was freed. As finish().
  int place(const graph::Graph& graph);

  bool waiting() const { return lanes_waiting_.load(std::memory_order_relaxed) > 0; }  // lanes that nobody runs yet
  int outstanding() const { return outstanding_.load(std::memory_order_relaxed); }     // lanes placed and not finished
  bool pending() const { return pending_count_.load(std::memory_order_relaxed) > 0; }  // tasks not wholly placed

  // The run has failed: forgets what nobody runs yet.
  void discard();

 private:
  struct Pending {
    graph::RecordRef record = graph::kNoRecord;
    std::int32_t next_block = 0;
    std::shared_ptr<Rendezvous> rendezvous;  // made when the first block of a cohort is placed
  };
  int place_locked(const graph::Graph& graph);
  bool place_block(const graph::Task& task, graph::RecordRef record, std::int32_t block,
                   const std::shared_ptr<Rendezvous>& rendezvous);
  void update_counts();

  CorePool& cores_;
  std::mutex mutex_;
  std::deque<Pending> pending_;
  std::deque<Lane> lanes_;
  std::atomic<int> lanes_waiting_{0}, outstanding_{0}, pending_count_{0};
};

}  // namespace simpler::executor
