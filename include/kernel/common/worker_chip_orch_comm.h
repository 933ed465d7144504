// The region of memory through which a host worker and the orchestration of its chip talk: how it is described, and what is
// said about its counters. The host passes the descriptor as scalars, in the order of its fields.
#pragma once
#include <cstddef>
#include <cstdint>

struct WorkerChipOrchRegionDesc {
  uint64_t magic_version;  // WORKER_CHIP_ORCH_MAGIC << 32 | major << 16 | minor; the minor version is not compared
  uint64_t region_id;
  uint64_t payload_base;  // device address
  uint64_t payload_bytes;
  uint64_t counter_base;  // device address of int32 counters, 64-byte aligned
  uint64_t counter_bytes;
};
static_assert(sizeof(WorkerChipOrchRegionDesc) == 48 && offsetof(WorkerChipOrchRegionDesc, counter_bytes) == 40,
              "the host passes it as six scalars");

constexpr size_t WORKER_CHIP_ORCH_REGION_DESC_SCALAR_COUNT = 6;
constexpr uint64_t WORKER_CHIP_ORCH_MAGIC = 0x4C334C32;
constexpr uint64_t WORKER_CHIP_ORCH_MAJOR = 2;

enum class WorkerChipOrchNotifyOp : uint32_t { Set = 0, Add = 1 };
enum class WorkerChipOrchWaitCmp : uint32_t { EQ = 0, NE = 1, GT = 2, GE = 3, LT = 4, LE = 5 };

// A part of the payload.
struct WorkerChipOrchPayloadView {
  uint64_t gm_addr;
  uint64_t nbytes;
};

struct WorkerChipOrchSignalTestResult {
  bool matched;
  int32_t observed;
};
