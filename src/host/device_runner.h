// DeviceRunner: owns one device for its whole life: attach, memory, callables, runs, teardown.
//
// What      One class for board and simulator: it speaks only to a Driver table (driver/driver.h).
// States    Fresh -> Ready -> {Unusable, Finalized}; Unusable -> Finalized. A device that is in doubt makes its runner
//           Unusable: it takes no more work, and finalize() resets the device by force.
// Runs      prepare -> launch -> wait -> finalize. A run is named by its RunId. While one run executes a second one may be
//           prepared; it is launched when the first one is finalized. Output tensors are copied back to the caller's
//           memory by finalize_run, and only if the run succeeded.
// Threads   Every method may be called from any thread; calls that change state are serialised inside. wait_run blocks
//           without holding a lock, so other threads may register, copy or prepare meanwhile.
// Fork      In a forked child an inherited runner answers kState to everything, and its destruction frees nothing.
// Lifetime  Host memory named by a prepared run's arguments must stay valid until finalize_run. Destroying a runner
//           finalizes it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "abi/call_config.h"
#include "abi/chip_callable.h"
#include "base/status.h"
#include "host/timeouts.h"
#include "task_args.h"

namespace simpler::driver {
struct Driver;
struct Stream;
}  // namespace simpler::driver

namespace simpler::host {

class Collector;

struct RunnerOptions {
  std::string platform;  // a2a3sim, a5sim, a2a3, a5
  std::string runtime;   // tensormap_and_ringbuffer, host_build_graph
  int device_id = 0;     // >= 0
  int sim_clusters = 0;  // clusters that the simulator models; 0: SIMPLER_SIM_CLUSTERS, else 8
  int sim_threads = 0;   // worker threads of the simulator; 0: SIMPLER_SIM_THREADS, else the CPUs of the affinity mask

  // Bytes of the programs for a board; the simulator has its own and takes empty ones.
  std::string dispatcher = {}, program = {}, cores = {};
  std::uint32_t dma_engines = 0;  // bit n: provision engine n's workspace

  // For whoever brings a device of his own, or observes one. All borrowed for the runner's life.
  const driver::Driver* driver = nullptr;  // else: as the platform says
  std::vector<Collector*> collectors = {};
  std::optional<Timeouts> timeouts = {};    // else: the environment's
  std::int32_t recovery_limit_ms = 10'000;  // of waiting for a device in doubt
  std::int32_t look_again_ms = 200;         // how late it is noticed that the device's program gave a run up
};

// Durations of one finished run, in nanoseconds.
struct RunTiming {
  std::uint64_t host_wall_ns = 0;    // prepare to finalize, as the caller sees it
  std::uint64_t device_wall_ns = 0;  // orchestration entry to last task
};

using RunId = std::uint64_t;  // unique in the process, never 0

// The code of a run that cannot be prepared beside the one that executes; it can when that one is finalized.
inline constexpr int kPreparedIncompatible = -3;

// One run to prepare. `args` and `config` are read during the call.
struct RunRequest {
  int callable_slot = 0;
  const ChipStorageTaskArgs* args = nullptr;
  const abi::CallConfig* config = nullptr;
  int pipeline_slot = -1;  // -1: a free one
  int arena_bank = 0;
  std::uint64_t run_id = 0, generation = 1, dispatch_id = 0;  // told in traces; not interpreted
  std::int32_t* accepted_state = nullptr;  // gets accepted_value, released, when the device has the launch
  std::int32_t accepted_value = 0;
};

// How many copies of the arenas a runtime wants: 1 if runs share them, else one for each pipeline slot.
int arena_copies(std::string_view runtime);

class DeviceRunner {
 public:
  static constexpr int kPipelineDepth = 2;

  // Checks the options and attaches to the device. On success *runner is Ready.
  static Status open(const RunnerOptions& options, std::unique_ptr<DeviceRunner>* runner);
  ~DeviceRunner();
  DeviceRunner(const DeviceRunner&) = delete;
  DeviceRunner& operator=(const DeviceRunner&) = delete;

  // Waits up to 10 s for each launched run, frees everything, detaches. Idempotent; afterwards every other call answers
  // kState. A device in doubt, or with a run that does not end, is reset by force instead. If that fails too, this says
  // so: the device is quarantined, and what is on it stays as it is, for good.
  Status finalize();

  // What every call answers in a forked child.
  static Status inherited_error();

  bool usable() const;       // takes work
  bool outstanding() const;  // a run is between prepare and finalize

  // Reserves the memory that runs of that configuration need, so that the first one finds it.
  Status prewarm(const abi::CallConfig& config);
  // Workspaces of the DMA engines (bit n: engine n), once per device.
  Status provision_dma(std::uint32_t engines);
  Status release_dma();
  std::uint32_t dma_engines() const;            // that the device has
  std::uint64_t dma_address(int engine) const;  // of its workspace; 0: none

  // For libraries of communication: the vendor's set-up of the process, and streams of the device, which finalize()
  // takes back if nobody did.
  Status prepare_acl();
  Status create_stream(driver::Stream** stream);
  Status destroy_stream(driver::Stream* stream);

  // Device memory. Addresses are opaque to the host; copies are checked against the allocation that holds them.
  Status malloc(std::size_t bytes, std::uint64_t* address);
  Status free(std::uint64_t address);
  Status copy_to(std::uint64_t destination, const void* source, std::size_t bytes);
  Status copy_from(void* destination, std::uint64_t source, std::size_t bytes);
  std::size_t committed_memory() const;  // bytes requested by live allocations of this runner, its own included

  // Callables: slot in [0, 64). The blob (layout: abi/chip_callable.h) is copied; identical content is stored once.
  Status register_callable(int slot, const void* blob, std::size_t bytes);
  Status unregister_callable(int slot);  // waits for runs that use it

  // Runs. `args` and the arrays it names are read by prepare (inputs) and written by finalize_run (outputs).
  // kPreparedIncompatible as code: see there.
  Status prepare_run(const RunRequest& request, RunId* run);
  Status prepare_run(int slot, const ChipStorageTaskArgs& args, const abi::CallConfig& config, RunId* run);
  // Refused while another run is between launch and finalize. After a failure the run can only be finalized.
  Status launch_run(RunId run);
  Status poll_run(RunId run, bool* done);
  Status wait_run(RunId run, std::int64_t timeout_ns, bool* done);  // timeout < 0: no limit
  Status finalize_run(RunId run, RunTiming* timing);                // the run's failure is this call's Status

  // Whether every launched run has ended, after waiting up to the limit. register_callable and unregister_callable wait
  // for that without a limit: whoever must stay interruptible asks this first.
  bool wait_idle(std::int64_t timeout_ns);

  // Facts.
  int device_id() const;
  int cluster_count() const;
  int thread_count() const;
  bool host_memory() const;                          // what the device calls its memory is this host's
  std::uint64_t device_orchestration_loads() const;  // aicpu_dlopen_count
  std::uint64_t host_orchestration_loads() const;    // host_dlopen_count
  std::uint64_t core_streams_created() const;        // for runs, so far; counted on a2a3 boards, elsewhere 0
  std::uint64_t heap_address(int bank) const;        // of the output memory; 0: none yet
  std::uint64_t staging_address(int slot) const;     // of the pipeline slot's retained block; 0: none yet

 private:
  class Impl;
  explicit DeviceRunner(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace simpler::host
