// StreamingRuntime: the front end "tensormap_and_ringbuffer". The orchestration runs on the calling thread and submits
// tasks to the graph while the executor runs them; memory is recycled in rings as scopes close.
//
// What      Implements the calls of pto_orchestration_api.h: checks arguments, waits where the graph is short of a
//           resource, decides when waiting is hopeless, and reads and writes elements in order with the tasks.
// Threads   run() and everything it calls back: one thread.
// Lifetime  Executor is borrowed for the runtime's life; orchestration, kernels and image for one run.
// Errors    A failing run ends with a code and a text in the image; the runtime serves the next run. Unless the image says
//           `abandoned`: then user code still runs, neither this object nor the code may go away, and no run may follow.
#pragma once
#include <chrono>
#include <vector>

#include "abi/run_image.h"
#include "executor/executor.h"
#include "frontend/orchestration.h"
#include "graph/graph.h"

namespace simpler::frontend {

class StreamingRuntime {
 public:
  explicit StreamingRuntime(executor::Executor& executor);

  void run(const Orchestration& orchestration, const executor::KernelTable& kernels, abi::RunImage& image);

 private:
  using Clock = executor::Executor::Clock;
  static constexpr std::chrono::milliseconds kNoProgressLimit{500};  // of a blocked submission while nothing is active
  static constexpr std::chrono::seconds kElementWaitLimit{15};
  static constexpr std::chrono::hours kForever{24};  // waits that something else ends

  // What orchestrations see of this object.
  struct Binding : PTO2Runtime {
    StreamingRuntime* self;
  };
  static StreamingRuntime& self(PTO2Runtime* runtime) { return *static_cast<Binding*>(runtime)->self; }
  static const PTO2RuntimeOps kOps;

  bool configure(const abi::RunImage& image);
  template <typename Function> void call_user(const char* what, Function function);
  // Configuration function and entry. False if they did not return in time: the run is not this thread's any more.
  bool orchestrate(const Orchestration& orchestration, abi::RunImage& image);
  void give_up();
  void report(abi::RunImage& image, bool submitted_all);
  // The line that tools look for after a time-out of the watchdog.
  void log_stall(bool submitted_all) const;
  void drain();

  TaskOutputTensors submit_kernels(MixedKernels kernels, const CoreTaskArgs& args);
  TaskOutputTensors submit(const graph::TaskSpec& spec, const CoreTaskArgs& args);
  bool acceptable(const CoreTaskArgs& args);
  void note_ignored(const CoreTaskArgs& args);
  bool kernel_exists(std::int32_t id);
  bool wait_for_room(const graph::Shortage& shortage, Clock::time_point* last_progress);
  bool hopeless(const graph::Shortage& shortage) const;
  void fail(const graph::Shortage& shortage, const char* why);
  [[gnu::format(printf, 2, 3)]] void refuse(const char* pattern, ...);

  TaskOutputTensors alloc(const CoreTaskArgs& args);
  void open_scope(PTO2ScopeMode mode, const char* file, int line);
  void close_scope();
  bool locate(const ChipTensor& tensor, std::uint32_t ndims, const std::uint32_t* indices, const char* call,
              char** address);
  bool wait_for_accessors(const ChipTensor& tensor, bool readers, const char* call);

  executor::Executor& executor_;
  Binding binding_;
  graph::Graph graph_;
  graph::ErrorLatch latch_;
  bool quarantined_ = false;  // a kernel of an earlier run has not returned
  bool noted_early_resolve_ = false;
  bool noted_dump_ = false;
  bool configured_ = false;
  abi::RuntimeEnv configured_rings_{};
  std::uint64_t configured_heaps_[graph::kRings] = {};
  const executor::KernelTable* kernels_ = nullptr;
  abi::RunImage* image_ = nullptr;  // of the run
  Clock::time_point begin_;
  std::vector<PTO2TaskId> accessors_;
};

}  // namespace simpler::frontend
