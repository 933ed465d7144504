// CallConfig: the options of one run, as they cross from Python to the runner and to child processes.
//
// What      A plain struct, 1144 bytes, no pointers. All zero is the default: every diagnostic off, ring sizes left to
//           the environment (PTO2_RING_*) and then to the built-in sizes.
// Rules     check_call_config(); it is run at every submission, since the fields are plain.
// Threads   A value.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "abi/verdict.h"

namespace simpler::abi {

constexpr int kRuntimeEnvRingCount = 4;   // one ring per scope depth; deeper scopes share the last
constexpr int kOutputPrefixBytes = 1024;  // with the terminating zero
constexpr int kSwimlaneLevelMax = 4;
constexpr int kDumpLevelMax = 3;
constexpr std::uint64_t kRingTaskWindowMin = 4;      // tasks; a power of two
constexpr std::uint64_t kRingDepPoolMin = 4;         // edges
constexpr std::uint64_t kDefaultDepPool = 16384;     // edges; where neither configuration nor environment says more
constexpr std::uint64_t kRingHeapMin = 1024;         // bytes: one aligned output block
constexpr std::uint64_t kRingCountMax = 0x7FFFFFFF;  // windows and pools are counted in int32

// Ring sizes, one entry per ring; 0 means "not set here".
struct RuntimeEnv {
  std::uint64_t ring_task_window[kRuntimeEnvRingCount];  // tasks
  std::uint64_t ring_heap[kRuntimeEnvRingCount];         // bytes
  std::uint64_t ring_dep_pool[kRuntimeEnvRingCount];     // edges
};
static_assert(sizeof(RuntimeEnv) == 96, "twelve 64-bit entries");

struct CallConfig {
  std::int32_t aicpu_thread_num;      // 0: the arch's default
  std::int32_t enable_chip_swimlane;  // 0..4
  std::int32_t enable_dump_args;      // 0..3
  std::int32_t enable_pmu;            // 0: off, else the event type
  std::int32_t enable_dep_gen;        // 0 or 1
  std::int32_t enable_scope_stats;    // 0 or 1
  RuntimeEnv runtime_env;
  char output_prefix[kOutputPrefixBytes];  // folder for diagnostics, zero-terminated; "" is none

  bool any_diagnostic() const {
    return enable_chip_swimlane > 0 || enable_dump_args > 0 || enable_pmu > 0 || enable_dep_gen != 0 ||
           enable_scope_stats != 0;
  }
};
static_assert(std::is_trivially_copyable_v<CallConfig> && std::is_standard_layout_v<CallConfig>);
static_assert(sizeof(CallConfig) == 1144);
static_assert(offsetof(CallConfig, aicpu_thread_num) == 0);
static_assert(offsetof(CallConfig, enable_chip_swimlane) == 4);
static_assert(offsetof(CallConfig, enable_dump_args) == 8);
static_assert(offsetof(CallConfig, enable_pmu) == 12);
static_assert(offsetof(CallConfig, enable_dep_gen) == 16);
static_assert(offsetof(CallConfig, enable_scope_stats) == 20);
static_assert(offsetof(CallConfig, runtime_env) == 24);
static_assert(offsetof(RuntimeEnv, ring_task_window) == 0);
static_assert(offsetof(RuntimeEnv, ring_heap) == 32);
static_assert(offsetof(RuntimeEnv, ring_dep_pool) == 64);
static_assert(offsetof(CallConfig, output_prefix) == 120);

Verdict check_runtime_env(const RuntimeEnv& env);
Verdict check_call_config(const CallConfig& config);

}  // namespace simpler::abi
