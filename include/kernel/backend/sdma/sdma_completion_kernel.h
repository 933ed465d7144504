// Copies through the SDMA engine that complete their task later: a kernel sends a request and may return at once.
//
// What      SdmaTget and SdmaTput describe a request, send_request_entry sends it and registers what the task waits for.
//           The scratch tile is what the chip stages through; it must stay as it is until the request is complete.
// Simulator The copy is complete when send_request_entry returns: it needs no workspace, and registers nothing.
#pragma once
#include "pto_async_kernel_api.h"

constexpr uint32_t SDMA_SCRATCH_ALIGNMENT = 32;  // bytes, of the scratch tile's address

enum class SdmaOp : uint8_t { TGET, TPUT };

template <typename Dst, typename Src, typename Scratch> struct SdmaRequestDescriptor {
  SdmaOp op;
  Dst dst;
  Src src;
  Scratch scratch;
  __gm__ uint8_t* workspace;  // get_dma_workspace(args, DMA_WORKSPACE_SDMA)
  uint32_t sync_id;           // of the engine's channel; requests with the same one complete in order
};

// From memory of another rank.
template <typename Dst, typename Src, typename Scratch>
static inline __aicore__ SdmaRequestDescriptor<Dst, Src, Scratch> SdmaTget(const Dst& dst, const Src& src,
                                                                           const Scratch& scratch,
                                                                           __gm__ uint8_t* workspace,
                                                                           uint32_t sync_id = 0) {
  return {SdmaOp::TGET, dst, src, scratch, workspace, sync_id};
}
// To memory of another rank.
template <typename Dst, typename Src, typename Scratch>
static inline __aicore__ SdmaRequestDescriptor<Dst, Src, Scratch> SdmaTput(const Dst& dst, const Src& src,
                                                                           const Scratch& scratch,
                                                                           __gm__ uint8_t* workspace,
                                                                           uint32_t sync_id = 0) {
  return {SdmaOp::TPUT, dst, src, scratch, workspace, sync_id};
}

// False if the request could not be sent.
template <typename Dst, typename Src, typename Scratch>
static inline __aicore__ bool send_request_entry(AsyncCtx& ctx,
                                                 const SdmaRequestDescriptor<Dst, Src, Scratch>& request) {
  const pto::comm::AsyncSession session;
  if (request.op == SdmaOp::TGET) {
    pto::comm::TGET_ASYNC(request.dst, request.src, session);
  } else {
    pto::comm::TPUT_ASYNC(request.dst, request.src, session);
  }
  pto2::detail::defer_flush(ctx);
  return true;
}
