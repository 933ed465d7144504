// Communication instructions: signals and one-sided copies between the memories of cores and ranks.
//
// Order     TNOTIFY is sequentially consistent: what a core stored before it is seen by whoever waited for it.
// Waiting   TWAIT has no time limit inside the runtime, whose watchdog knows more. A stand-alone program gives up with
//           a message after about a minute; PTO_CPU_SIM_TWAIT_MAX_SPINS sets another number of polls, 0 for no limit.
#pragma once

#include "async_common/async_types.hpp"
#include "collectives.hpp"
#include "comm_types.hpp"
#include "copies.hpp"

namespace pto {
namespace comm {

namespace comm_detail {

inline bool holds(int32_t value, int32_t wanted, WaitCmp compare) {
  switch (compare) {
    case WaitCmp::EQ: return value == wanted;
    case WaitCmp::NE: return value != wanted;
    case WaitCmp::GT: return value > wanted;
    case WaitCmp::GE: return value >= wanted;
    case WaitCmp::LT: return value < wanted;
    case WaitCmp::LE: return value <= wanted;
  }
  fail("TWAIT: comparison %d does not exist; comparisons are EQ, NE, GT, GE, LT and LE", static_cast<int>(compare));
}

// Calls f(offset) for all elements of a global tensor until it returns false.
template <class GlobalT, class F> PTO_INLINE bool for_all(const GlobalT& g, F f) {
  for (int64_t a = 0; a < g.GetShape(0); ++a)
    for (int64_t b = 0; b < g.GetShape(1); ++b)
      for (int64_t c = 0; c < g.GetShape(2); ++c)
        for (int64_t d = 0; d < g.GetShape(3); ++d)
          for (int64_t e = 0; e < g.GetShape(4); ++e)
            if (!f(a * g.GetStride(0) + b * g.GetStride(1) + c * g.GetStride(2) + d * g.GetStride(3) +
                   e * g.GetStride(4)))
              return false;
  return true;
}

inline uint64_t twait_poll_limit() {
  if (sim_state.hooks.park != nullptr) return 0;
  const char* const text = getenv("PTO_CPU_SIM_TWAIT_MAX_SPINS");
  return text != nullptr ? strtoull(text, nullptr, 0) : 60000000000u / Waiter::kSleepNanoseconds;
}

template <class SignalT> constexpr void need_signal() {
  static_assert(sizeof(typename SignalT::DType) == 4 && std::is_integral<typename SignalT::DType>::value,
                "a signal is a global tensor of int32_t");
}
}  // namespace comm_detail

// Adds to a signal, or sets it.
template <class SignalT> PTO_INLINE RecordEvent TNOTIFY(const SignalT& signal, int32_t value, NotifyOp op) {
  comm_detail::need_signal<SignalT>();
  comm_detail::need_memory(signal, "TNOTIFY");
  int32_t* const word = reinterpret_cast<int32_t*>(signal.data());
  if (op == NotifyOp::AtomicAdd)
    __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST);
  else
    __atomic_store_n(word, value, __ATOMIC_SEQ_CST);
  comm_detail::wake(reinterpret_cast<const volatile uint32_t*>(word));
  return {};
}

// True if all elements of the signal compare so now.
template <class SignalT> PTO_INLINE bool TTEST(const SignalT& signal, int32_t value, WaitCmp compare) {
  comm_detail::need_signal<SignalT>();
  comm_detail::need_memory(signal, "TTEST");
  const int32_t* const words = reinterpret_cast<const int32_t*>(signal.data());
  return comm_detail::for_all(signal, [&](int64_t i) {
    return comm_detail::holds(__atomic_load_n(words + i, __ATOMIC_SEQ_CST), value, compare);
  });
}

// Waits until all elements of the signal compare so.
template <class SignalT> PTO_INLINE RecordEvent TWAIT(const SignalT& signal, int32_t value, WaitCmp compare) {
  comm_detail::need_signal<SignalT>();
  comm_detail::need_memory(signal, "TWAIT");
  const int32_t* const words = reinterpret_cast<const int32_t*>(signal.data());
  const uint64_t limit = comm_detail::twait_poll_limit();
  comm_detail::Waiter waiter;
  for (;;) {
    const int32_t* behind = nullptr;  // the first element that is not there yet, and what it was
    int32_t seen = 0;
    const bool done = comm_detail::for_all(signal, [&](int64_t i) {
      behind = words + i;
      seen = __atomic_load_n(behind, __ATOMIC_SEQ_CST);
      return comm_detail::holds(seen, value, compare);
    });
    if (done) return {};
    if (limit != 0 && waiter.sleeps() >= limit)
      comm_detail::fail("TWAIT: a signal is still %d after %llu polls; compared with %d by WaitCmp %d", seen,
                        (unsigned long long)limit, value, static_cast<int>(compare));
    waiter.wait(reinterpret_cast<const volatile uint32_t*>(behind), static_cast<uint32_t>(seen));
  }
}

// Copies src to memory of another rank. The staging tiles are what the chip copies through; they are not touched.
template <AtomicType kAtomic = AtomicType::AtomicNone, class Dst, class Src, class... Staging>
PTO_INLINE RecordEvent TPUT(const Dst& dst, const Src& src, Staging&...) {
  if constexpr (kAtomic == AtomicType::AtomicNone)
    return comm_detail::copy_globals(dst, src, comm_detail::PutSame(), "TPUT");
  else
    return comm_detail::copy_globals(dst, src, comm_detail::PutAtomic<kAtomic>(), "TPUT");
}
// Copies from memory of another rank.
template <class Dst, class Src, class... Staging>
PTO_INLINE RecordEvent TGET(const Dst& dst, const Src& src, Staging&...) {
  return comm_detail::copy_globals(dst, src, comm_detail::PutSame(), "TGET");
}

// The same through a session; complete on return.
template <class Dst, class Src, class Session>
PTO_INLINE AsyncEvent TPUT_ASYNC(const Dst& dst, const Src& src, const Session&) {
  comm_detail::copy_globals(dst, src, comm_detail::PutSame(), "TPUT_ASYNC");
  return {};
}
template <class Dst, class Src, class Session>
PTO_INLINE AsyncEvent TGET_ASYNC(const Dst& dst, const Src& src, const Session&) {
  comm_detail::copy_globals(dst, src, comm_detail::PutSame(), "TGET_ASYNC");
  return {};
}

}  // namespace comm

// Brings global memory closer: nothing to do on the simulator.
struct PrefetchAsyncContext {
  comm::AsyncSession session;
  template <class Workspace> explicit PrefetchAsyncContext(Workspace*) {}
};
template <class Dst, class GlobalT> PTO_INLINE RecordEvent TPREFETCH(Dst&, const GlobalT&) { return {}; }
template <class GlobalT> PTO_INLINE comm::AsyncEvent TPREFETCH_ASYNC(const GlobalT&, PrefetchAsyncContext&) {
  return {};
}

}  // namespace pto
