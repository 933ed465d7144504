// StreamingRuntime: the front end "tensormap_and_ringbuffer". Tasks run while the orchestration submits more; memory is
// recycled in rings as scopes close.
//
// What      Waits where the graph is short of a resource, decides when waiting is hopeless, and reads and writes elements
//           in order with the tasks.
#pragma once
#include <vector>

#include "frontend/runtime.h"

namespace simpler::frontend {

class StreamingRuntime : public Runtime {
 public:
  explicit StreamingRuntime(executor::Executor& executor) : Runtime(executor) {}

 private:
  static constexpr std::chrono::milliseconds kNoProgressLimit{500};  // of a blocked submission while nothing is active
  static constexpr std::chrono::seconds kElementWaitLimit{15};

  bool configure_graph(const graph::RingSizes& sizes, const std::array<char*, graph::kRings>& heaps) override {
    return graph_.configure(sizes, heaps, graph::Lifetime::kScopes);
  }
  bool checks_argument_count() const override { return true; }
  bool runs_tasks_while_submitting() const override { return true; }
  int most_lanes() const override { return INT32_MAX; }
  void begin_tasks(const abi::RunImage&) override {}
  void finish_tasks() override;
  void taken(const graph::TaskSpec&, const CoreTaskArgs&, const graph::Submitted& submitted) override {
    if (submitted.ready) executor_.push(submitted.record);
  }
  bool make_room(const graph::Shortage& shortage, Clock::time_point* last_progress) override;
  bool settle(const ChipTensor& tensor, bool write, const char* call) override;
  bool hopeless(const graph::Shortage& shortage) const;

  std::vector<PTO2TaskId> accessors_;
};

}  // namespace simpler::frontend
