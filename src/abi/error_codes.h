// The codes that end a run: one table for the enum, the texts, Python and the documentation.
//
// What      A row is (code, NAME, hint). A code exists only if somebody can act on it; a retired number keeps its row.
//           Hosts report positive codes negated; -1 is the host's own, for what fails before a task runs.
//           pto_runtime_status.h gives users the same numbers as macros; asserted below.
// C++17, no libraries.
#pragma once
#include <cstdint>

#include "pto_runtime_status.h"

// clang-format off
#define SIMPLER_ERROR_TABLE(ROW)                                                                                              \
  ROW(-1,  TOO_FEW_ARGUMENTS,         "pass the missing ones, or correct expected_arg_count in the orchestration")           \
  ROW(1,   SCOPE_DEADLOCK,            "raise ring_task_window: a scope holds at most window - 1 tasks; in tensormap_and_ringbuffer closing scopes earlier helps too") \
  ROW(2,   HEAP_RING_DEADLOCK,        "raise ring_heap; in tensormap_and_ringbuffer closing scopes earlier, so that their outputs are given back, helps too") \
  ROW(3,   FLOW_CONTROL_DEADLOCK,     "raise ring_task_window; in tensormap_and_ringbuffer holding fewer tasks in outer scopes of this ring helps too") \
  ROW(4,   DEP_POOL_OVERFLOW,         "in tensormap_and_ringbuffer raise ring_dep_pool, or close scopes earlier so that dependencies are given back; in host_build_graph join predecessors with rt_submit_dummy_task") \
  ROW(5,   INVALID_ARGS,              "correct the call that the text names")                                                \
  ROW(6,   DEPENDENCY_OVERFLOW,       "no longer reported")                                                                  \
  ROW(7,   REQUIRE_SYNC_START_INVALID, "use at most as many blocks as the device has cores of that kind")                    \
  ROW(8,   TENSOR_WAIT_TIMEOUT,       "the tasks that write the tensor take longer than the limit of 15 s")                  \
  ROW(9,   EXPLICIT_ORCH_FATAL,       "the orchestration stopped the run itself")                                            \
  ROW(10,  SCOPE_TASKS_OVERFLOW,      "close scopes earlier")                                                                \
  ROW(11,  TENSORMAP_OVERFLOW,        "track fewer writes: use manual_dep; in tensormap_and_ringbuffer closing scopes earlier helps too") \
  ROW(100, SCHEDULER_TIMEOUT,         "correct what the text names; if it is only slow, raise SIMPLER_SCHEDULER_TIMEOUT_MS, for an orchestration SIMPLER_STREAM_SYNC_TIMEOUT_MS") \
  ROW(101, ASYNC_COMPLETION_INVALID,  "a completion condition needs an address and a known type")                            \
  ROW(102, ASYNC_WAIT_OVERFLOW,       "at most 64 conditions per task and 64 tasks may wait for conditions")                 \
  ROW(103, ASYNC_REGISTRATION_FAILED, "at most 64 conditions per task")                                                      \
  ROW(104, READY_QUEUE_OVERFLOW,      "no longer reported")                                                                  \
  ROW(120, KERNEL_CRASHED,            "look at the code that the text names: a kernel with its task and core, or the orchestration")
// clang-format on

namespace simpler::abi {

enum class ErrorCode : std::int32_t {
  NONE = 0,
#define SIMPLER_ENUM_ROW(code, name, hint) name = code,
  SIMPLER_ERROR_TABLE(SIMPLER_ENUM_ROW)
#undef SIMPLER_ENUM_ROW
};

// "UNKNOWN" for a number without a row: users may report codes of their own.
inline const char* error_name(std::int32_t code) {
  switch (code) {
#define SIMPLER_NAME_ROW(code, name, hint) \
  case code: return #name;
    SIMPLER_ERROR_TABLE(SIMPLER_NAME_ROW)
#undef SIMPLER_NAME_ROW
  }
  return code == 0 ? "NONE" : "UNKNOWN";
}

// What the user can do about it.
inline const char* error_hint(std::int32_t code) {
  switch (code) {
#define SIMPLER_HINT_ROW(code, name, hint) \
  case code: return hint;
    SIMPLER_ERROR_TABLE(SIMPLER_HINT_ROW)
#undef SIMPLER_HINT_ROW
  }
  return code == 0 ? "" : "the code is the orchestration's own: look where it reports it";
}

#define SIMPLER_SAME_NUMBER(code, name, hint) \
  static_assert(code == 120 || code < 0 || PTO2_ERROR_##name == code, #name);
#define PTO2_ERROR_KERNEL_CRASHED 120
#define PTO2_ERROR_TOO_FEW_ARGUMENTS -1
SIMPLER_ERROR_TABLE(SIMPLER_SAME_NUMBER)
#undef SIMPLER_SAME_NUMBER
#undef PTO2_ERROR_KERNEL_CRASHED
#undef PTO2_ERROR_TOO_FEW_ARGUMENTS

}  // namespace simpler::abi
