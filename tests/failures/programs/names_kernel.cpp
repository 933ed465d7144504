// Mentions every name of the kernel interface, in the ways in which programs use them. Compiled, not run.
#include <cstdint>
#include <pto/pto-inst.hpp>

#include "pto/comm/comm_types.hpp"
#include "pto/comm/pto_comm_inst.hpp"

#ifndef __gm__
#define __gm__
#endif
#ifndef __aicore__
#define __aicore__ [aicore]
#endif

#include "intrinsic.h"
#include "tensor.h"

using namespace pto;

#include "backend/sdma/sdma_completion_kernel.h"
#include "backend/urma/urma_completion_kernel.h"
#include "common/platform_config.h"
#include "data_type.h"
#include "pipe_sync.h"
#include "platform_comm/comm_context.h"
#include "pto_async_kernel_api.h"
#include "pto_task_id.h"

// What generated kernels do to the names of cache maintenance, after the headers.
#undef dcci
#undef dsb
#undef SINGLE_CACHE_LINE
#undef CACHELINE_OUT
#undef ENTIRE_DATA_CACHE
#undef DSB_DDR
#define dcci(...) ((void)0)
#define dsb(...) ((void)0)
#define SINGLE_CACHE_LINE 0
#define CACHELINE_OUT 0
#define ENTIRE_DATA_CACHE 1
#define DSB_DDR 0

static_assert(SPMD_LOCAL_CONTEXT_INDEX == 48 && SPMD_GLOBAL_CONTEXT_INDEX == 49 && PTO2_EXT_PARAMS_COUNT == 2, "");
static_assert(PAYLOAD_LOCAL_CONTEXT_INDEX == 48 && PAYLOAD_GLOBAL_CONTEXT_INDEX == 49, "");
static_assert(sizeof(AsyncCtx) == 40 && sizeof(LocalContext) == 48 && sizeof(GlobalContext) == 24, "");
static_assert(sizeof(DeferredCompletionEntry) == 32 && alignof(DeferredCompletionSlab) == 64 &&
                  MAX_COMPLETIONS_PER_TASK == 64,
              "");
static_assert(COMPLETION_ENGINE_SDMA == 0u && COMPLETION_ENGINE_ROCE == 1u && COMPLETION_ENGINE_URMA == 2u &&
                  COMPLETION_ENGINE_CCU == 3u,
              "");
static_assert(COMPLETION_TYPE_COUNTER == 0 && COMPLETION_TYPE_SDMA_EVENT_RECORD == 1 &&
                  COMPLETION_TYPE_URMA_EVENT_HANDLE == 2,
              "");
static_assert(PTO2_ALIGN_SIZE == 64 && PLATFORM_PROF_SYS_CNT_FREQ > 0, "");
static_assert(static_cast<int>(CompletionPollState::PENDING) == 0 &&
                  static_cast<int>(CompletionPollState::READY) == 1 &&
                  static_cast<int>(CompletionPollState::FAILED) == 2,
              "");
#if defined(SIMPLER_ARCH_A5)  // the fields have another name there, and that of the other runtime
static_assert(offsetof(LocalContext, s_block_idx) == 0 && offsetof(LocalContext, s_block_num) == 4, "");
#endif
static_assert(offsetof(LocalContext, block_idx) == 0 && offsetof(LocalContext, block_num) == 4 &&
                  offsetof(LocalContext, async_ctx) == 8,
              "");
static_assert(DMA_WORKSPACE_SDMA == 0 && DMA_WORKSPACE_URMA == 1 && DMA_WORKSPACE_KIND_COUNT == 2, "");

// Generated kernels shadow the type's name.
template <typename ChipTensor> static __aicore__ __gm__ float* data_of(__gm__ ChipTensor& t) {
  return reinterpret_cast<__gm__ float*>(t.buffer.addr) + t.start_offset;
}

static __aicore__ void asynchronous(__gm__ int64_t* args, volatile __gm__ void* counter) {
  AsyncCtx ctx = get_async_ctx(args);
  if (!async_ctx_is_deferred(ctx)) return;
  CompletionToken token = {1, 2, COMPLETION_ENGINE_ROCE, COMPLETION_TYPE_COUNTER, 0};
  if (!register_completion_condition(ctx, token)) pto2::detail::defer_error(ctx, 102);
  save_expected_notification_counter(ctx, counter, 3);
  send_notification(counter, 1, pto::comm::NotifyOp::AtomicAdd);
  send_notification(counter, 1, pto::comm::NotifyOp::Set);
  pto2::detail::defer_load_slab(ctx);
  pto2::detail::defer_flush(ctx);
  pto2::detail::defer_flush_range(ctx.completion_count, 64);
  *ctx.completion_error_code =
      static_cast<int32_t>(ctx.completion_capacity + ctx.task_token.local() + ctx.completion_entries[0].expected_value);
}

static __aicore__ void copies(__gm__ int64_t* args, __gm__ uint8_t* workspace) {
  using Flat = GlobalTensor<float, Shape<1, 1, 1, 1, 64>, Stride<64, 64, 64, 64, 1>>;
  using Scratch = Tile<TileType::Vec, uint8_t, 1, 256, BLayout::RowMajor>;
  Flat here(reinterpret_cast<__gm__ float*>(args[0])), there(reinterpret_cast<__gm__ float*>(args[1]));
  Scratch scratch;
  TASSIGN(scratch, SDMA_SCRATCH_ALIGNMENT);
  AsyncCtx ctx = get_async_ctx(args);
  auto get = SdmaTget(here, there, scratch, workspace);
  const bool sent = get.op == SdmaOp::TGET && send_request_entry(ctx, get) &&
                    send_request_entry(ctx, SdmaTput(there, here, scratch, workspace, 1)) &&
                    send_request_entry(ctx, UrmaTget(here, there, workspace, 1)) &&
                    send_request_entry(ctx, UrmaTput(there, here, workspace, 1));
  __gm__ float* peer = pto2::urma_backend::peer_mr_ptr<float>(workspace, 1, 64);
  if (!sent && peer != nullptr && pto2::urma_backend::peer_mr_base_addr(workspace, 1) != 0) *peer = 0;
  PrefetchAsyncContext prefetch(workspace);
  auto event = TPREFETCH_ASYNC(here, prefetch);
  static_cast<void>(event.Wait(prefetch.session));
}

static __aicore__ void ranks(__gm__ int64_t* args) {
  __gm__ CommContext* context = reinterpret_cast<__gm__ CommContext*>(args[1]);
  const uint64_t local = context->windowsIn[context->rankId];
  __gm__ int32_t* remote =
      reinterpret_cast<__gm__ int32_t*>(context->windowsIn[(context->rankId + 1) % context->rankNum] + (local - local));
  pto::comm::Signal signal(remote);
  pto::comm::TNOTIFY(signal, 1, pto::comm::NotifyOp::AtomicAdd);
  pto::comm::TWAIT(signal, 1, pto::comm::WaitCmp::GE);
  static_cast<void>(pto::comm::TTEST(signal, 1, pto::comm::WaitCmp::EQ));
}

extern "C" __aicore__ __attribute__((always_inline)) void kernel_entry(__gm__ int64_t* args) {
  __gm__ ChipTensor* tensor = reinterpret_cast<__gm__ ChipTensor*>(args[0]);
  __gm__ Tensor* older = reinterpret_cast<__gm__ Tensor*>(args[0]);
  const int32_t block = get_block_idx(args), blocks = get_block_num(args), lane = get_sub_block_id(args);
  __gm__ uint8_t* workspace = get_dma_workspace(args, DMA_WORKSPACE_SDMA);
  const float scale = from_u64<float>(static_cast<uint64_t>(args[2])) + from_u64<float>(to_u64(1.0f));
  __gm__ LocalContext* local = reinterpret_cast<__gm__ LocalContext*>(args[SPMD_LOCAL_CONTEXT_INDEX]);
  __gm__ GlobalContext* global = reinterpret_cast<__gm__ GlobalContext*>(args[SPMD_GLOBAL_CONTEXT_INDEX]);
#if defined(__DAV_VEC__)
  *data_of(*tensor) = scale * static_cast<float>(block + blocks + lane + global->sub_block_id);
#elif defined(__DAV_CUBE__)
  *data_of(*older) = scale * static_cast<float>(tensor->shapes[0] + tensor->strides[0] + tensor->ndims);
#endif
  if (workspace == nullptr && local->async_ctx.task_token.is_valid() && get_element_size(tensor->dtype) == 4)
    asynchronous(args, older);
  if (block < 0) ranks(args);
  if (block < 0) copies(args, workspace);
  dcci(workspace, SINGLE_CACHE_LINE, CACHELINE_OUT);
  dsb(DSB_DDR);
  static_cast<void>(block + blocks + lane);
  static_cast<void>(older);
  static_cast<void>(global->dma_workspace[0]);
  pipe_sync();
}
