// Runs: the runs of one device, from prepare to finalize.
//
// Phases    Prepared -> Running -> Complete, or Prepared -> Complete if the launch did not go through; then finalize.
// Failure   A run that fails by itself (a kernel crashed, an orchestration gave up) leaves the device as it was. A launch
//           that the cores refused, or that went half way, and a wait that the device answers with an error, leave the
//           device in doubt: it is given up, and so are the launches that follow.
// Threads   Any. wait blocks without a lock.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "host/run_trace.h"
#include "host/runner_parts.h"
#include "host/staging.h"

namespace simpler::host {

class Runs {
 public:
  explicit Runs(RunnerParts& parts) : parts_(parts) {}

  Status prewarm(const abi::CallConfig& config);  // reserves the arenas of its rings
  Status prepare(const RunRequest& request, RunId* id);
  Status launch(RunId id);
  Status wait(RunId id, std::int64_t timeout_ns, bool* done);  // 0: poll; < 0: no limit
  Status finalize(RunId id, RunTiming* timing);

  // With the lock held.
  RunId running() const;  // the run that executes; 0: none
  bool uses_prepared(int callable_slot) const;
  std::array<RunId, kSlots> outstanding() const;  // 0: none
  std::uint64_t staging_address(int slot) const;  // of the slot's retained block
  void release();

 private:
  enum class Phase { kFree, kPrepared, kRunning, kComplete };
  // One of the places for a run, with what it keeps from run to run.
  struct Run {
    Phase phase = Phase::kFree;
    RunId id = 0;
    RunIdentity identity;
    int callable_slot = 0;
    std::shared_ptr<Callable> callable;
    bool launched = false;                   // the device may have begun with it
    Status completion;                       // of the launch and of waiting
    std::int32_t* accepted_state = nullptr;  // borrowed until the launch
    std::int32_t accepted_value = 0;
    std::uint64_t phases = 0;  // address of the buffer for times; 0: none
    RunTrace trace{};
    Staging staging;
    std::vector<ChipTensor> tensors;
    DeviceBlock image, kernel_args;
    abi::KernelArgs args{abi::kKernelArgsA2A3};
  };

  Run* find(RunId id);
  Status prepare_in(Run& run, const RunRequest& request, int bank, bool overlaps);
  Status bind(Run& run, const RunRequest& request, int bank, bool overlaps, const abi::LaunchShape& shape);
  Status place_rings(const abi::RuntimeEnv& rings, int bank, bool overlaps, std::uint64_t* heap_base);
  Status collect(Run& run, RunTiming* timing, std::uint64_t* wall_ns);
  // waited_for: whose stream, if code is kSyncTimeout.
  void end(RunId id, int code, const char* waited_for = "");
  int wait_for_streams(std::int64_t limit_ms, const char** whose);
  bool hangs(const Run& run) const;
  bool given_up(const Run& run);

  RunnerParts& parts_;
  std::array<Run, kSlots> runs_;
  abi::RunImage image_;  // of the run being prepared; all but its arguments
};

}  // namespace simpler::host
