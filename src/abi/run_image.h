// What host and device exchange about callables and runs: plain structs in device memory.
//
// What      The host fills a RunImage for each run, launches the device program with its address, and reads the RunResult
//           back when the program has ended. InitArgs and RegisterCallableArgs are passed by value at launch.
// Layout    InitArgs and RegisterCallableArgs are shared with the board's programs and asserted; RunImage is our own.
#pragma once
#include <cstddef>
#include <cstdint>

#include "abi/call_config.h"
#include "pto_types.h"
#include "task_args.h"

namespace simpler::abi {

constexpr int kMaxCallables = 64;
constexpr int kMaxKernels = 1024;
constexpr int kSymbolBytes = 64;
constexpr int kResultTextBytes = 1024;

struct InitArgs {
  std::uint32_t device;
  std::uint32_t log_level;
  std::int32_t scheduler_timeout_ms;
  std::uint32_t pad;
  std::uint64_t dma_workspace[2];
};
static_assert(sizeof(InitArgs) == 32 && offsetof(InitArgs, dma_workspace) == 16);

struct RegisterCallableArgs {
  std::int32_t id;
  std::uint32_t pad;
  std::uint64_t code_address;  // of the orchestration's shared object, in device memory
  std::uint64_t code_bytes;
  char function_name[kSymbolBytes];
  char config_name[kSymbolBytes];  // "": none
};
static_assert(sizeof(RegisterCallableArgs) == 152 && offsetof(RegisterCallableArgs, code_address) == 8 &&
              offsetof(RegisterCallableArgs, function_name) == 24 && offsetof(RegisterCallableArgs, config_name) == 88);

// A part of a run: first start to last end, in nanoseconds from the run's start; equal: it did not take place.
struct TimingWindow {
  std::int64_t begin_ns;
  std::int64_t end_ns;
};

// How a run ended. code: 0, or one of error_codes.h, or kTooFewArguments.
struct RunResult {
  static constexpr std::int32_t kTooFewArguments = -1;
  std::int32_t code;
  // A kernel or the orchestration did not return: the device must not be used again, nor its memory freed. It may be set,
  // and then is the last to be, while the device program still runs.
  std::uint32_t abandoned;
  std::uint64_t wall_ns;                             // from the orchestration's entry to the last task's end
  TimingWindow timing_slots[MAX_TASK_TIMING_SLOTS];  // of the tasks that share a slot
  TimingWindow orchestration;                        // its entry to its return, where it runs beside its tasks
  TimingWindow scheduling;                           // from when tasks may begin to the last one's end, likewise
  char text[kResultTextBytes];                       // the cause; "" on success
};

// How many cores and control threads a run has, and on which control processors its threads belong.
struct LaunchShape {
  std::int32_t worker_count;   // cores
  std::int32_t thread_count;   // control threads that work
  std::int32_t launch_count;   // that are started; those that are not on an allowed processor leave
  std::int32_t allowed_count;  // 0: any processor
  std::int32_t allowed_cpus[16];
};

struct RunImage {
  RunResult result;       // written by the device
  std::int32_t callable;  // id given at registration
  std::int32_t pad;
  LaunchShape shape;
  std::uint64_t kernel_table;  // device address of kMaxKernels code addresses by func id; 0: no such kernel
  RuntimeEnv rings;            // resolved: no zeros
  std::uint64_t heap_base[kRuntimeEnvRingCount];  // device addresses of the output memory
  ChipStorageTaskArgs args;                       // device addresses; the host copies only the used tensors
};

}  // namespace simpler::abi
