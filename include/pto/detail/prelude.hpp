// The environment that kernel code expects around the instructions: qualifiers, pipes, events, flags, barriers, cache
// operations. On the simulator all of them are free of effect on data: one core's instructions run in program order.
// What may be redefined by kernels is a function, never a macro; only the empty qualifiers are macros.
#pragma once

#include <stdint.h>

// Kernels test this name to find out that they are compiled for the simulator.
#ifndef PTO_CPUSTUB_HPP
#define PTO_CPUSTUB_HPP
#endif

// Neither core type given: code for both.
#if !defined(__DAV_VEC__) && !defined(__DAV_CUBE__)
#define __DAV_VEC__
#define __DAV_CUBE__
#endif

#define AICORE
#ifndef __aicore__
#define __aicore__
#endif
#ifndef __global__
#define __global__
#endif
#ifndef __gm__
#define __gm__
#endif
#define __ubuf__
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define __fbuf__
#define __biasbuf__
#define __tf__
// The two below are also parameter names inside some C libraries' headers: an empty macro does no harm there.
#define __in__
#define __out__

#define PTO_INLINE inline __attribute__((always_inline))
#define PTO_INST PTO_INLINE
#define PTO_INTERNAL PTO_INLINE

// ---- pipes and events -------------------------------------------------------------------------------------------
enum pipe_t {
  PIPE_S = 0,
  PIPE_V,
  PIPE_M,
  PIPE_MTE1,
  PIPE_MTE2,
  PIPE_MTE3,
  PIPE_ALL,
  PIPE_MTE4,
  PIPE_MTE5,
  PIPE_V2,
  PIPE_FIX,
};

typedef int event_t;
constexpr event_t EVENT_ID0 = 0, EVENT_ID1 = 1, EVENT_ID2 = 2, EVENT_ID3 = 3;
constexpr event_t EVENT_ID4 = 4, EVENT_ID5 = 5, EVENT_ID6 = 6, EVENT_ID7 = 7;

// Flags order the pipes of one core; a simulated core has a single order already.
template <class From, class To, class Event> inline void set_flag(From, To, Event) {}
template <class From, class To, class Event> inline void wait_flag(From, To, Event) {}

// A barrier also orders a core's plain stores before whatever tells another core about them.
template <class Pipe> inline void pipe_barrier(Pipe) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

// ---- caches -----------------------------------------------------------------------------------------------------
typedef int mem_dsb_t;

// In a namespace of their own, imported by using-directives: kernels that declare constants of the same names in
// `cache_line_t` or `dcci_dst_t` hide these instead of clashing with them.
namespace pto_cache_constants {
constexpr int SINGLE_CACHE_LINE = 0, ENTIRE_DATA_CACHE = 1;
constexpr int CACHELINE_ALL = 0, CACHELINE_UB = 1, CACHELINE_OUT = 2, CACHELINE_ATOMIC = 3;
constexpr mem_dsb_t DSB_ALL = 0, DSB_DDR = 1, DSB_UB = 2;
}  // namespace pto_cache_constants
using namespace pto_cache_constants;
namespace cache_line_t {
using namespace pto_cache_constants;
}
namespace dcci_dst_t {
using namespace pto_cache_constants;
}

// Host caches are coherent: what is left is the order, and that a value polled in a loop is read again.
template <class... Arguments> inline void dcci(Arguments...) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
// A template, so that a kernel's own `dsb(mem_dsb_t)` wins.
template <class Kind> inline void dsb(Kind) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

// ---- vector masks: every instruction here works on its valid region ------------------------------------------------
template <class... Arguments> inline void set_mask_norm(Arguments...) {}
template <class... Arguments> inline void set_mask_count(Arguments...) {}
template <class... Arguments> inline void set_vector_mask(Arguments...) {}
