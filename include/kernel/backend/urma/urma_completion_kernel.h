// Copies through the URMA engine (a5, streaming runtime) that complete their task later.
//
// What      UrmaTget and UrmaTput describe a request between flat tensors, send_request_entry sends it and registers what
//           the task waits for. Memory of another rank is addressed by an offset from the base that the workspace names.
// Simulator The copy is complete when send_request_entry returns: it registers nothing. There is no workspace, so
//           peer_mr_base_addr answers 0; addresses of other ranks come from a CommContext.
// Errors    A tensor of more than one dimension, or two of different lengths, end the run with error 101.
#pragma once
#include "pto_async_kernel_api.h"

#ifndef PTO2_ERROR_ASYNC_COMPLETION_INVALID
#define PTO2_ERROR_ASYNC_COMPLETION_INVALID 101
#endif

enum class UrmaOp : uint8_t { TGET, TPUT };

template <typename Dst, typename Src> struct UrmaRequestDescriptor {
  UrmaOp op;
  Dst dst;
  Src src;
  __gm__ uint8_t* workspace;  // get_dma_workspace(args, DMA_WORKSPACE_URMA)
  uint32_t remote_rank;
};

// From memory of another rank.
template <typename Dst, typename Src>
static inline __aicore__ UrmaRequestDescriptor<Dst, Src> UrmaTget(const Dst& dst, const Src& src,
                                                                  __gm__ uint8_t* workspace, uint32_t remote_rank) {
  return {UrmaOp::TGET, dst, src, workspace, remote_rank};
}
// To memory of another rank.
template <typename Dst, typename Src>
static inline __aicore__ UrmaRequestDescriptor<Dst, Src> UrmaTput(const Dst& dst, const Src& src,
                                                                  __gm__ uint8_t* workspace, uint32_t remote_rank) {
  return {UrmaOp::TPUT, dst, src, workspace, remote_rank};
}

namespace pto2 {
namespace urma_backend {

// Where the memory of a rank starts that this one may reach; 0 without a workspace.
static inline __aicore__ uint64_t peer_mr_base_addr(__gm__ uint8_t* workspace, uint32_t peer) {
  return workspace == nullptr ? 0 : reinterpret_cast<__gm__ uint64_t*>(workspace)[peer];
}
template <typename T>
static inline __aicore__ __gm__ T* peer_mr_ptr(__gm__ uint8_t* workspace, uint32_t peer, uint64_t offset) {
  const uint64_t base = peer_mr_base_addr(workspace, peer);
  return base == 0 ? nullptr : reinterpret_cast<__gm__ T*>(base + offset);
}
template <typename Global> static inline __aicore__ bool is_flat(const Global& tensor) {
  return tensor.GetShape(0) == 1 && tensor.GetShape(1) == 1 && tensor.GetShape(2) == 1 && tensor.GetShape(3) == 1;
}

}  // namespace urma_backend
}  // namespace pto2

// False if the request could not be sent.
template <typename Dst, typename Src>
static inline __aicore__ bool send_request_entry(AsyncCtx& ctx, const UrmaRequestDescriptor<Dst, Src>& request) {
  using pto2::urma_backend::is_flat;
  if (!is_flat(request.dst) || !is_flat(request.src) || request.dst.GetShape(4) != request.src.GetShape(4)) {
    pto2::detail::defer_error(ctx, PTO2_ERROR_ASYNC_COMPLETION_INVALID);
    pto2::detail::defer_flush(ctx);
    return false;
  }
  const pto::comm::AsyncSession session;
  if (request.op == UrmaOp::TGET) {
    pto::comm::TGET_ASYNC(request.dst, request.src, session);
  } else {
    pto::comm::TPUT_ASYNC(request.dst, request.src, session);
  }
  pto2::detail::defer_flush(ctx);
  return true;
}
