// WorkerChipOrchEndpoint: the chip's side of a region of memory that it shares with its host worker while a run is on.
//
// What      Payload, which both sides read and write as they agree, and int32 counters through which they agree. The host
//           passes the region's descriptor as six scalars; common/worker_chip_orch_comm.h says what they are.
// Order     Who finds a counter's new value finds the payload that was written before it was set.
// Waiting   signal_wait ends at its limit, and at once when the run has failed.
// Errors    The first one sticks: error() keeps it, and every later call answers false. A passed limit is an error too.
// Threads   One: the orchestration's. Each counter has one writer; Add is not atomic.
#pragma once
#include <sched.h>
#include <time.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "aicpu/cache_maintenance.h"
#include "common/worker_chip_orch_comm.h"
#include "pto_orchestration_api.h"

enum class WorkerChipEndpointErrorKind : uint32_t {
  NONE = 0,
  BAD_DESCRIPTOR = 1,
  OUT_OF_BOUNDS = 2,
  SIGNAL_TIMEOUT = 3,
  SIGNAL_PROTOCOL = 4,  // an operation or comparison that does not exist, or a wait in a run that has failed
};
enum class WorkerChipEndpointOp : uint32_t {
  NONE = 0,
  INIT = 1,
  COUNTER_ADDR = 2,
  PAYLOAD_READ = 3,
  PAYLOAD_WRITE = 4,
  SIGNAL_NOTIFY = 5,
  SIGNAL_TEST = 6,
  SIGNAL_WAIT = 7,
};

inline const char* worker_chip_endpoint_op_to_string(WorkerChipEndpointOp op) {
  switch (op) {
    case WorkerChipEndpointOp::NONE: return "none";
    case WorkerChipEndpointOp::INIT: return "init";
    case WorkerChipEndpointOp::COUNTER_ADDR: return "counter_addr";
    case WorkerChipEndpointOp::PAYLOAD_READ: return "payload_read";
    case WorkerChipEndpointOp::PAYLOAD_WRITE: return "payload_write";
    case WorkerChipEndpointOp::SIGNAL_NOTIFY: return "signal_notify";
    case WorkerChipEndpointOp::SIGNAL_TEST: return "signal_test";
    case WorkerChipEndpointOp::SIGNAL_WAIT: return "signal_wait";
  }
  return "unknown";
}

struct WorkerChipEndpointError {
  WorkerChipEndpointErrorKind kind = WorkerChipEndpointErrorKind::NONE;
  WorkerChipEndpointOp op = WorkerChipEndpointOp::NONE;
  uint64_t region_id = 0;
  uint64_t counter_addr = 0;     // of the signal operations
  int32_t counter_operand = 0;   // what it was compared with, set to or changed by
  int32_t observed_counter = 0;  // its last value that was seen
  char message[256] = "";
};

namespace simpler_comm {

inline uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return uint64_t{1000000000u} * static_cast<uint64_t>(now.tv_sec) + static_cast<uint64_t>(now.tv_nsec);
}
inline bool run_has_failed() { return current_runtime() != nullptr && rt_is_fatal(); }

// Calls done() until it is true, the limit has passed or the run has failed; answers done(). The other side is another
// process, which nobody can wake us from: look often at first, then every 20 us.
template <typename Done> bool wait_until(uint64_t limit_ns, Done done) {
  const uint64_t begin = now_ns();
  for (uint32_t looks = 0;; ++looks) {
    if (done()) return true;
    if (now_ns() - begin >= limit_ns || run_has_failed()) return done();
    if (looks < 64) {
      sched_yield();
    } else {
      const timespec pause = {0, 20000};
      nanosleep(&pause, nullptr);
    }
  }
}

inline int32_t load_counter(uint64_t address) {
  return __atomic_load_n(reinterpret_cast<const int32_t*>(address), __ATOMIC_ACQUIRE);
}
inline void store_counter(uint64_t address, int32_t value) {
  __atomic_store_n(reinterpret_cast<int32_t*>(address), value, __ATOMIC_RELEASE);
}
// Whether [offset, offset + bytes) lies in [0, size).
inline bool within(uint64_t offset, uint64_t bytes, uint64_t size) { return bytes <= size && offset <= size - bytes; }

}  // namespace simpler_comm

class WorkerChipOrchEndpoint {
 public:
  explicit WorkerChipOrchEndpoint(const WorkerChipOrchRegionDesc& region) : region_(region) { check(); }
  // The region's six scalars, in the order of its fields.
  WorkerChipOrchEndpoint(const uint64_t* scalars, size_t count) {
    if (scalars == nullptr || count < WORKER_CHIP_ORCH_REGION_DESC_SCALAR_COUNT) {
      fail(WorkerChipEndpointErrorKind::BAD_DESCRIPTOR, WorkerChipEndpointOp::INIT, "%zu scalars, and a region has %zu",
           scalars == nullptr ? size_t{0} : count, WORKER_CHIP_ORCH_REGION_DESC_SCALAR_COUNT);
      return;
    }
    std::memcpy(&region_, scalars, sizeof region_);
    check();
  }

  const WorkerChipEndpointError& error() const { return error_; }
  const WorkerChipOrchRegionDesc& descriptor() const { return region_; }

  // The address of the counter at a byte offset.
  bool counter_addr(uint64_t offset, uint64_t& address) {
    if (!good()) return false;
    if (offset % 4 != 0 || !simpler_comm::within(offset, 4, region_.counter_bytes)) {
      return fail(WorkerChipEndpointErrorKind::OUT_OF_BOUNDS, WorkerChipEndpointOp::COUNTER_ADDR,
                  "counter offset %llu must be a multiple of 4 below %llu", wide(offset), wide(region_.counter_bytes));
    }
    address = region_.counter_base + offset;
    return true;
  }
  bool validate_counter_addr(uint64_t address) const {
    return good() && address >= region_.counter_base && (address - region_.counter_base) % 4 == 0 &&
           simpler_comm::within(address - region_.counter_base, 4, region_.counter_bytes);
  }

  // Where the bytes lie; the host's writes before the last counter that was looked at are in them.
  bool payload_read(uint64_t offset, uint64_t bytes, WorkerChipOrchPayloadView& view) {
    if (!in_payload(offset, bytes, WorkerChipEndpointOp::PAYLOAD_READ)) return false;
    view = {region_.payload_base + offset, bytes};
    cache_invalidate_range(reinterpret_cast<const void*>(view.gm_addr), bytes);
    return true;
  }
  bool payload_write(uint64_t offset, const void* source, uint64_t bytes) {
    if (!in_payload(offset, bytes, WorkerChipEndpointOp::PAYLOAD_WRITE)) return false;
    if (source == nullptr && bytes > 0) {
      return fail(WorkerChipEndpointErrorKind::OUT_OF_BOUNDS, WorkerChipEndpointOp::PAYLOAD_WRITE,
                  "the source of %llu bytes is null", wide(bytes));
    }
    void* const destination = reinterpret_cast<void*>(region_.payload_base + offset);
    if (bytes > 0) std::memcpy(destination, source, bytes);
    cache_flush_range(destination, bytes);
    return true;
  }

  bool signal_notify(uint64_t address, int32_t value, WorkerChipOrchNotifyOp op) {
    if (!is_counter(address, value, WorkerChipEndpointOp::SIGNAL_NOTIFY)) return false;
    if (op != WorkerChipOrchNotifyOp::Set && op != WorkerChipOrchNotifyOp::Add) {
      return fail(WorkerChipEndpointErrorKind::SIGNAL_PROTOCOL, WorkerChipEndpointOp::SIGNAL_NOTIFY,
                  "operation %u is neither Set nor Add", static_cast<unsigned>(op));
    }
    const uint32_t before =
        op == WorkerChipOrchNotifyOp::Add ? static_cast<uint32_t>(simpler_comm::load_counter(address)) : 0;
    simpler_comm::store_counter(address, static_cast<int32_t>(before + static_cast<uint32_t>(value)));
    return true;
  }
  bool signal_test(uint64_t address, int32_t value, WorkerChipOrchWaitCmp compare,
                   WorkerChipOrchSignalTestResult& result) {
    if (!is_comparison(address, value, compare, WorkerChipEndpointOp::SIGNAL_TEST)) return false;
    result.observed = simpler_comm::load_counter(address);
    result.matched = holds(result.observed, value, compare);
    return true;
  }
  // `observed` is the counter's last value, whatever the answer.
  bool signal_wait(uint64_t address, int32_t value, WorkerChipOrchWaitCmp compare, uint64_t limit_ns,
                   int32_t& observed) {
    if (!is_comparison(address, value, compare, WorkerChipEndpointOp::SIGNAL_WAIT)) return false;
    const bool matched = simpler_comm::wait_until(limit_ns, [&] {
      observed = simpler_comm::load_counter(address);
      return holds(observed, value, compare);
    });
    if (matched) return true;
    const bool failed = simpler_comm::run_has_failed();
    fail(failed ? WorkerChipEndpointErrorKind::SIGNAL_PROTOCOL : WorkerChipEndpointErrorKind::SIGNAL_TIMEOUT,
         WorkerChipEndpointOp::SIGNAL_WAIT, "%s after %llu ns of waiting for counter 0x%llx to be %s %d: it is %d",
         failed ? "the run failed" : "time-out", wide(limit_ns), wide(address), name(compare), value, observed);
    error_.counter_addr = address;
    error_.counter_operand = value;
    error_.observed_counter = observed;
    return false;
  }

 private:
  static unsigned long long wide(uint64_t value) { return value; }
  static const char* name(WorkerChipOrchWaitCmp compare) {
    static constexpr const char* kNames[] = {"==", "!=", ">", ">=", "<", "<="};
    return kNames[static_cast<uint32_t>(compare)];
  }
  static bool holds(int32_t value, int32_t wanted, WorkerChipOrchWaitCmp compare) {
    switch (compare) {
      case WorkerChipOrchWaitCmp::EQ: return value == wanted;
      case WorkerChipOrchWaitCmp::NE: return value != wanted;
      case WorkerChipOrchWaitCmp::GT: return value > wanted;
      case WorkerChipOrchWaitCmp::GE: return value >= wanted;
      case WorkerChipOrchWaitCmp::LT: return value < wanted;
      case WorkerChipOrchWaitCmp::LE: return value <= wanted;
    }
    return false;
  }

  bool good() const { return error_.kind == WorkerChipEndpointErrorKind::NONE; }
  void check() {
    using Kind = WorkerChipEndpointErrorKind;
    constexpr auto kInit = WorkerChipEndpointOp::INIT;
    constexpr uint64_t kWanted = WORKER_CHIP_ORCH_MAGIC << 32 | WORKER_CHIP_ORCH_MAJOR << 16;
    if (region_.magic_version >> 16 != kWanted >> 16) {
      fail(Kind::BAD_DESCRIPTOR, kInit, "magic and version are 0x%llx, and this side speaks 0x%llx",
           wide(region_.magic_version), wide(kWanted));
    } else if (region_.counter_base % 64 != 0) {
      fail(Kind::BAD_DESCRIPTOR, kInit, "the counters start at 0x%llx, which is not 64-byte aligned",
           wide(region_.counter_base));
    } else if (!plausible(region_.payload_base, region_.payload_bytes) ||
               !plausible(region_.counter_base, region_.counter_bytes)) {
      fail(Kind::BAD_DESCRIPTOR, kInit,
           "payload at 0x%llx, %llu bytes, and counters at 0x%llx, %llu bytes: both need memory that does not wrap",
           wide(region_.payload_base), wide(region_.payload_bytes), wide(region_.counter_base),
           wide(region_.counter_bytes));
    }
  }
  static bool plausible(uint64_t base, uint64_t bytes) {
    return (base != 0 || bytes == 0) && base <= UINT64_MAX - bytes;
  }

  bool in_payload(uint64_t offset, uint64_t bytes, WorkerChipEndpointOp op) {
    if (!good()) return false;
    if (simpler_comm::within(offset, bytes, region_.payload_bytes)) return true;
    return fail(WorkerChipEndpointErrorKind::OUT_OF_BOUNDS, op, "%llu bytes at offset %llu of a payload of %llu bytes",
                wide(bytes), wide(offset), wide(region_.payload_bytes));
  }
  bool is_counter(uint64_t address, int32_t operand, WorkerChipEndpointOp op) {
    if (!good()) return false;
    if (validate_counter_addr(address)) return true;
    fail(WorkerChipEndpointErrorKind::OUT_OF_BOUNDS, op, "0x%llx is no counter of the %llu bytes at 0x%llx",
         wide(address), wide(region_.counter_bytes), wide(region_.counter_base));
    error_.counter_addr = address;
    error_.counter_operand = operand;
    return false;
  }
  bool is_comparison(uint64_t address, int32_t operand, WorkerChipOrchWaitCmp compare, WorkerChipEndpointOp op) {
    if (!is_counter(address, operand, op)) return false;
    if (static_cast<uint32_t>(compare) <= static_cast<uint32_t>(WorkerChipOrchWaitCmp::LE)) return true;
    return fail(WorkerChipEndpointErrorKind::SIGNAL_PROTOCOL, op, "comparison %u does not exist",
                static_cast<unsigned>(compare));
  }
  // Always false.
  [[gnu::format(printf, 4, 5)]] bool fail(WorkerChipEndpointErrorKind kind, WorkerChipEndpointOp op,
                                          const char* pattern, ...) {
    error_.kind = kind;
    error_.op = op;
    error_.region_id = region_.region_id;
    const int used = std::snprintf(error_.message, sizeof error_.message,
                                   "L3-L2 endpoint error in %s: region=%llu: ", worker_chip_endpoint_op_to_string(op),
                                   wide(region_.region_id));
    va_list values;
    va_start(values, pattern);
    std::vsnprintf(error_.message + used, sizeof error_.message - static_cast<size_t>(used), pattern, values);
    va_end(values);
    return false;
  }

  WorkerChipOrchRegionDesc region_{};
  WorkerChipEndpointError error_;
};
