// Runtime: what the front ends share. The orchestration runs on the calling thread and submits tasks to a graph.
//
// What      Implements the calls of pto_orchestration_api.h over one graph and one executor: checks arguments, latches the
//           first failure, reads and writes elements, and reports how the run ended. When tasks may start, what to do
//           where the graph is short of something, and which elements may be touched is decided by the front end that
//           derives from it: streaming/ or whole_graph/.
// Threads   run() and everything it calls back: one thread.
// Lifetime  Executor is borrowed for the runtime's life; orchestration, kernels and image for one run.
// Errors    A failing run ends with a code and a text in the image; the runtime serves the next run. Unless the image says
//           `abandoned`: then user code still runs, neither this object nor the code may go away, and no run may follow.
#pragma once
#include <chrono>
#include <vector>

#include "abi/run_image.h"
#include "base/log.h"
#include "executor/executor.h"
#include "frontend/orchestration.h"
#include "graph/graph.h"

namespace simpler::frontend {

class Runtime {
 public:
  virtual ~Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  void run(const Orchestration& orchestration, const executor::KernelTable& kernels, abi::RunImage& image);

 protected:
  using Clock = executor::Executor::Clock;
  static constexpr std::chrono::hours kForever{24};  // waits that something else ends

  explicit Runtime(executor::Executor& executor);

  // ---- what front ends differ in ----

  virtual bool configure_graph(const graph::RingSizes& sizes, const std::array<char*, graph::kRings>& heaps) = 0;
  virtual bool checks_argument_count() const = 0;
  // Whether tasks may begin while the orchestration still submits: then both are phases of the run.
  virtual bool runs_tasks_while_submitting() const = 0;
  // Most blocks of one task, counted for each lane.
  virtual int most_lanes() const = 0;
  // The graph has been emptied and the executor's run has begun; nothing is submitted yet.
  virtual void begin_tasks(const abi::RunImage& image) = 0;
  // All scopes are closed. Returns when all tasks have completed or the run has failed.
  virtual void finish_tasks() = 0;
  // The graph has taken a task. Its record stays: this thread alone reclaims it.
  virtual void taken(const graph::TaskSpec& spec, const CoreTaskArgs& args, const graph::Submitted& submitted) = 0;
  // True if it is worth trying again; else the latch is raised.
  virtual bool make_room(const graph::Shortage& shortage, Clock::time_point* last_progress) = 0;
  // Makes sure that elements of the tensor may be read, or written; false with the latch raised if they may not.
  virtual bool settle(const ChipTensor& tensor, bool write, const char* call) = 0;

  // Graph record and replay; see pto_graph_api.h.
  virtual SimplerGraphBlock begin_graph(std::uint64_t key, const CoreTaskArgs& boundary, bool always_ended);
  virtual bool end_graph();
  virtual PTO2TaskId commit_graph();

  // ---- for them ----

  // Submits a task whose kernels have been checked; empty if the run has failed or fails now.
  TaskOutputTensors submit(const graph::TaskSpec& spec, const CoreTaskArgs& args);
  // Fails the run for want of room.
  void fail(const graph::Shortage& shortage, const char* why);
  [[gnu::format(printf, 2, 3)]] void refuse(const char* pattern, ...);
  // Of device records about the orchestration.
  log::Origin log_origin() const;
  // No recorded misuse, and descriptors whose rank and type exist; else the latch is raised.
  bool well_formed(const CoreTaskArgs& args);

  executor::Executor& executor_;
  graph::Graph graph_;
  graph::ErrorLatch latch_;
  const executor::KernelTable* kernels_ = nullptr;

 private:
  // What orchestrations see of this object.
  struct Binding : PTO2Runtime {
    Runtime* self;
  };
  static Runtime& self(PTO2Runtime* runtime) { return *static_cast<Binding*>(runtime)->self; }
  static const PTO2RuntimeOps kOps;

  bool configure(const abi::RunImage& image);
  template <typename Function> void call_user(const char* what, Function function);
  // Configuration function and entry. False if they did not return in time: the run is not this thread's any more.
  bool orchestrate(const Orchestration& orchestration, abi::RunImage& image);
  void give_up();
  std::int64_t since_begin() const { return (Clock::now() - begin_).count(); }
  void report(abi::RunImage& image, bool submitted_all);
  static void tell_abandoned(abi::RunImage& image);
  // The line that tools look for after a time-out of the watchdog.
  void log_stall(bool submitted_all) const;

  TaskOutputTensors submit_kernels(MixedKernels kernels, const CoreTaskArgs& args);
  TaskOutputTensors alloc(const CoreTaskArgs& args);
  bool acceptable(const CoreTaskArgs& args);
  bool acceptable(const CoreTaskPredicate& predicate);
  void note_ignored(const CoreTaskArgs& args);
  bool kernel_exists(std::int32_t id);
  void open_scope(PTO2ScopeMode mode, const char* file, int line);
  void close_scope();
  // Where an element is; false if the run has failed, the tensor has no memory, or locate refuses.
  bool access(const ChipTensor& tensor, std::uint32_t ndims, const std::uint32_t* indices, const char* call,
              char** address);
  // False, with the latch raised, if there is no such element.
  bool locate(const ChipTensor& tensor, std::uint32_t ndims, const std::uint32_t* indices, const char* call,
              char** address);

  Binding binding_;
  bool quarantined_ = false;  // a kernel of an earlier run has not returned
  bool noted_early_resolve_ = false;
  bool noted_dump_ = false;
  bool configured_ = false;
  abi::RuntimeEnv configured_rings_{};
  std::uint64_t configured_heaps_[graph::kRings] = {};
  abi::RunImage* image_ = nullptr;  // of the run
  Clock::time_point begin_;
};

}  // namespace simpler::frontend
