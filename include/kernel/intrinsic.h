// What a kernel can ask about its own dispatch: block, lane, asynchronous context, DMA workspace.
//
// The last two of the 50 argument slots hold pointers to a LocalContext (this dispatch) and a GlobalContext (this core).
// The getters overload the compiler's own no-argument functions of the same names, which this runtime does not program.
#pragma once
#include <cstdint>

#include "common/core_qualifiers.h"
#include "common/dma_workspace.h"
#include "pto_task_id.h"

constexpr int32_t SPMD_LOCAL_CONTEXT_INDEX = 48;
constexpr int32_t SPMD_GLOBAL_CONTEXT_INDEX = 49;
constexpr int32_t PAYLOAD_LOCAL_CONTEXT_INDEX = SPMD_LOCAL_CONTEXT_INDEX;
constexpr int32_t PAYLOAD_GLOBAL_CONTEXT_INDEX = SPMD_GLOBAL_CONTEXT_INDEX;
constexpr int32_t PTO2_EXT_PARAMS_COUNT = 2;
constexpr int32_t KERNEL_ARG_SLOTS = 50;
constexpr int32_t MAX_COMPLETIONS_PER_TASK = 64;

// One condition that must hold before a task counts as complete.
struct DeferredCompletionEntry {
  uint64_t addr;
  uint64_t backend_cookie;
  uint32_t expected_value;
  uint32_t engine;
  int32_t completion_type;
  uint32_t pad;
};
static_assert(sizeof(DeferredCompletionEntry) == 32, "entries cross the border as 32 bytes");

// Where a kernel registers its conditions; one per dispatch.
struct alignas(64) DeferredCompletionSlab {
  volatile uint32_t count;
  volatile int32_t error_code;
  DeferredCompletionEntry entries[MAX_COMPLETIONS_PER_TASK];
};
static_assert(sizeof(DeferredCompletionSlab) == 64 * 33, "");

struct AsyncCtx {
  volatile __gm__ uint32_t* completion_count;
  volatile __gm__ int32_t* completion_error_code;
  volatile __gm__ DeferredCompletionEntry* completion_entries;
  uint32_t completion_capacity;
  PTO2TaskId task_token;

  static inline __aicore__ AsyncCtx make(PTO2TaskId token, volatile __gm__ DeferredCompletionSlab* slab) {
    return {&slab->count, &slab->error_code, slab->entries, MAX_COMPLETIONS_PER_TASK, token};
  }
};
static_assert(sizeof(AsyncCtx) == 40, "");

// The a5 compiler has built-ins named block_idx and block_num, so kernels prefix the fields there. Kernels of
// host_build_graph do not; nobody tells a kernel's compiler which runtime it is for, so where there are no built-ins both
// names exist.
struct LocalContext {
#if defined(SIMPLER_ARCH_A5) && defined(__CPU_SIM)
  union {
    int32_t s_block_idx;
    int32_t block_idx;
  };
  union {
    int32_t s_block_num;
    int32_t block_num;
  };
#elif defined(SIMPLER_ARCH_A5)
  int32_t s_block_idx;
  int32_t s_block_num;
#else
  int32_t block_idx;
  int32_t block_num;
#endif
  AsyncCtx async_ctx;
};
static_assert(sizeof(LocalContext) == 48, "");

struct GlobalContext {
  int32_t sub_block_id;                              // 0: AIV0, 1: AIV1 of the core's cluster
  uint64_t dma_workspace[DMA_WORKSPACE_KIND_COUNT];  // device addresses, 0 where there is none
};
static_assert(sizeof(GlobalContext) == 24, "");

#if defined(SIMPLER_ARCH_A5)
#define SIMPLER_BLOCK_FIELD(name) s_##name
#else
#define SIMPLER_BLOCK_FIELD(name) name
#endif

// Index of this block in [0, get_block_num(args)).
static __aicore__ inline int32_t get_block_idx(__gm__ int64_t* args) {
  return reinterpret_cast<__gm__ LocalContext*>(args[SPMD_LOCAL_CONTEXT_INDEX])->SIMPLER_BLOCK_FIELD(block_idx);
}

// Blocks of this task, as set by its launch specification.
static __aicore__ inline int32_t get_block_num(__gm__ int64_t* args) {
  return reinterpret_cast<__gm__ LocalContext*>(args[SPMD_LOCAL_CONTEXT_INDEX])->SIMPLER_BLOCK_FIELD(block_num);
}
#undef SIMPLER_BLOCK_FIELD

// Which vector lane of its cluster this kernel runs on: 0 or 1. Meaningful for the vector lanes of MIX tasks.
static __aicore__ inline int32_t get_sub_block_id(__gm__ int64_t* args) {
  return reinterpret_cast<__gm__ GlobalContext*>(args[SPMD_GLOBAL_CONTEXT_INDEX])->sub_block_id;
}

#if !defined(SIMPLER_RUNTIME_WHOLE_GRAPH)
// The workspace of an asynchronous DMA engine, or nullptr where the device has none (the simulator has none).
static __aicore__ inline __gm__ uint8_t* get_dma_workspace(__gm__ int64_t* args, int kind) {
  if (kind < 0 || kind >= DMA_WORKSPACE_KIND_COUNT) return nullptr;
  return reinterpret_cast<__gm__ uint8_t*>(
      reinterpret_cast<__gm__ GlobalContext*>(args[SPMD_GLOBAL_CONTEXT_INDEX])->dma_workspace[kind]);
}
#endif
