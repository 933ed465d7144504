// DeviceRunner: owns one device for its whole life: attach, memory, callables, runs, teardown.
//
// What      One class for board and simulator: it speaks only to a Driver table (driver/driver.h).
// States    Fresh -> Ready -> {Unusable, Finalized}; Unusable -> Finalized. Checked by one function, become().
// Runs      prepare -> launch -> wait -> finalize. A run is named by its RunId. At most kPipelineDepth runs may be between
//           prepare and finalize; they execute in launch order. Output tensors are copied back to the caller's memory by
//           finalize_run, and only if the run succeeded.
// Threads   Every method may be called from any thread; calls that change state are serialised inside. wait_run blocks
//           without holding a lock, so other threads may register, copy or prepare meanwhile.
// Fork      In a forked child an inherited runner answers kState to everything, and its destruction frees nothing.
// Lifetime  Host memory named by a prepared run's arguments must stay valid until finalize_run. Destroying a runner
//           finalizes it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "abi/call_config.h"
#include "abi/chip_callable.h"
#include "base/status.h"
#include "task_args.h"

namespace simpler::host {

struct RunnerOptions {
  std::string platform;  // a2a3sim, a5sim
  std::string runtime;   // tensormap_and_ringbuffer, host_build_graph
  int device_id = 0;     // >= 0
  int sim_clusters = 0;  // clusters that the simulator models; 0: SIMPLER_SIM_CLUSTERS, else 8
  int sim_threads = 0;   // worker threads of the simulator; 0: SIMPLER_SIM_THREADS, else the CPUs of the affinity mask
};

// Durations of one finished run, in nanoseconds.
struct RunTiming {
  std::uint64_t host_wall_ns = 0;    // prepare to finalize, as the caller sees it
  std::uint64_t device_wall_ns = 0;  // orchestration entry to last task
};

using RunId = std::uint64_t;  // unique in the process, never 0

class DeviceRunner {
 public:
  static constexpr int kPipelineDepth = 2;

  // Checks the options and attaches to the device. On success *runner is Ready.
  static Status open(const RunnerOptions& options, std::unique_ptr<DeviceRunner>* runner);
  ~DeviceRunner();
  DeviceRunner(const DeviceRunner&) = delete;
  DeviceRunner& operator=(const DeviceRunner&) = delete;

  // Waits up to 10 s for each launched run, frees everything, detaches. Idempotent; afterwards every other call answers
  // kState. If a run does not end, its memory, code and threads stay as they are, for good.
  Status finalize();

  // Device memory. Addresses are opaque to the host; copies are checked against the allocation that holds them.
  Status malloc(std::size_t bytes, std::uint64_t* address);
  Status free(std::uint64_t address);
  Status copy_to(std::uint64_t destination, const void* source, std::size_t bytes);
  Status copy_from(void* destination, std::uint64_t source, std::size_t bytes);
  std::size_t committed_memory() const;  // bytes requested by live allocations of this runner

  // Callables: slot in [0, 64). The blob (layout: abi/chip_callable.h) is copied; identical content is stored once.
  Status register_callable(int slot, const void* blob, std::size_t bytes);
  Status unregister_callable(int slot);  // waits for runs that use it

  // Runs. `args` and the arrays it names are read by prepare (inputs) and written by finalize_run (outputs).
  Status prepare_run(int slot, const ChipStorageTaskArgs& args, const abi::CallConfig& config, RunId* run);
  Status launch_run(RunId run);
  Status poll_run(RunId run, bool* done);
  Status wait_run(RunId run, std::int64_t timeout_ns, bool* done);  // timeout < 0: no limit
  Status finalize_run(RunId run, RunTiming* timing);                // the run's failure is this call's Status

  // Whether every launched run has ended, after waiting up to the limit. register_callable and unregister_callable queue
  // behind those runs without a limit: whoever must stay interruptible asks this first.
  bool wait_idle(std::int64_t timeout_ns);

  // Facts.
  int device_id() const;
  int cluster_count() const;
  int thread_count() const;
  std::uint64_t device_orchestration_loads() const;  // aicpu_dlopen_count
  std::uint64_t host_orchestration_loads() const;    // host_dlopen_count

 private:
  class Impl;
  explicit DeviceRunner(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace simpler::host
