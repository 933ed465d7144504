// Cache maintenance by address range, for orchestrations that share memory with somebody outside the coherence domain.
// On the simulator all memory is coherent: a full fence is enough.
#pragma once
#include <atomic>
#include <cstddef>

inline void cache_invalidate_range(const void*, std::size_t) { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void cache_flush_range(const void*, std::size_t) { std::atomic_thread_fence(std::memory_order_seq_cst); }
