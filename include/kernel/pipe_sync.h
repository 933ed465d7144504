// pipe_sync(): the last call of a kernel, so that its stores have landed before the task counts as complete.
// It orders the core's store pipe before its scalar pipe. Needs the flag functions of <pto/pto-inst.hpp> before it.
#pragma once
#if !defined(__DAV_VEC__) && !defined(__DAV_CUBE__)
#error "pipe_sync.h: define __DAV_VEC__ (vector core) or __DAV_CUBE__ (matrix core); the kernel compiler does"
#endif

static __aicore__ inline void pipe_sync() {
#if defined(__DAV_VEC__)
  set_flag(PIPE_MTE3, PIPE_S, EVENT_ID7);
  wait_flag(PIPE_MTE3, PIPE_S, EVENT_ID7);
#else
  set_flag(PIPE_FIX, PIPE_S, EVENT_ID7);
  wait_flag(PIPE_FIX, PIPE_S, EVENT_ID7);
#endif
}
