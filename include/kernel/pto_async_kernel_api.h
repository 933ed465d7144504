// Deferred completion: a kernel may return before its task is over. It registers conditions, and the runtime counts the
// task as complete, and starts its consumers, only when all of them hold.
//
// Errors    The first one wins and ends the run: a 65th condition is error 102; conditions without an address or of an
//           unknown type are found by the runtime, error 101.
// Threads   Each dispatch has a slab of its own.
#pragma once
#include <cstdint>

#include "common/completion_types.h"
#include "intrinsic.h"
#include "pto/comm/pto_comm_inst.hpp"

#ifndef PTO2_ALIGN_SIZE
#define PTO2_ALIGN_SIZE 64
#endif
#ifndef PTO2_ERROR_ASYNC_WAIT_OVERFLOW
#define PTO2_ERROR_ASYNC_WAIT_OVERFLOW 102
#endif

// A condition to register.
struct CompletionToken {
  uint64_t addr;
  uint32_t expected_value;
  uint32_t engine;
  int32_t completion_type;
  uint64_t backend_cookie;
};

enum class CompletionPollState : uint8_t { PENDING, READY, FAILED };

namespace pto2 {
namespace detail {

// Makes stores to the slab visible; the simulator's memory is coherent, so a compiler barrier is enough there.
static inline __aicore__ void defer_flush_range(volatile __gm__ void*, uint64_t) {
  __asm__ __volatile__("" ::: "memory");
}
static inline __aicore__ void defer_flush(AsyncCtx& ctx) { defer_flush_range(ctx.completion_count, PTO2_ALIGN_SIZE); }
static inline __aicore__ void defer_load_slab(AsyncCtx& ctx) {
  defer_flush_range(ctx.completion_count, PTO2_ALIGN_SIZE);
}

// Ends the run with a code; the first one of a dispatch stays.
static inline __aicore__ void defer_error(AsyncCtx& ctx, int32_t code) {
  if (*ctx.completion_error_code == 0) *ctx.completion_error_code = code;
}

}  // namespace detail
}  // namespace pto2

static inline __aicore__ AsyncCtx get_async_ctx(__gm__ int64_t* args) {
  return reinterpret_cast<__gm__ LocalContext*>(args[SPMD_LOCAL_CONTEXT_INDEX])->async_ctx;
}

// Whether this dispatch may register conditions.
static inline __aicore__ bool async_ctx_is_deferred(const AsyncCtx& ctx) { return ctx.task_token.is_valid(); }

// False, and error 102, if the task has no room for another condition.
static inline __aicore__ bool register_completion_condition(AsyncCtx& ctx, const CompletionToken& token) {
  const uint32_t index = *ctx.completion_count;
  if (index >= ctx.completion_capacity) {
    pto2::detail::defer_error(ctx, PTO2_ERROR_ASYNC_WAIT_OVERFLOW);
    return false;
  }
  volatile __gm__ DeferredCompletionEntry& entry = ctx.completion_entries[index];
  entry.addr = token.addr;
  entry.backend_cookie = token.backend_cookie;
  entry.expected_value = token.expected_value;
  entry.engine = token.engine;
  entry.completion_type = token.completion_type;
  *ctx.completion_count = index + 1;
  return true;
}

// The task is over when the 32-bit counter has reached `expected`.
static inline __aicore__ void save_expected_notification_counter(AsyncCtx& ctx, volatile __gm__ void* counter,
                                                                 uint32_t expected) {
  const CompletionToken token = {reinterpret_cast<uint64_t>(counter), expected, COMPLETION_ENGINE_SDMA,
                                 COMPLETION_TYPE_COUNTER, 0};
  register_completion_condition(ctx, token);
  pto2::detail::defer_flush(ctx);
}

// Sets or adds to a counter, which may belong to another rank.
static inline __aicore__ void send_notification(volatile __gm__ void* remote_counter, int32_t value,
                                                pto::comm::NotifyOp op) {
  pto::comm::Signal signal(reinterpret_cast<__gm__ int32_t*>(const_cast<__gm__ void*>(remote_counter)));
  pto::comm::TNOTIFY(signal, value, op);
}
