// The simulated core as the library sees it: its memories, its lane, how it waits, how a failed check ends it.
// Inside the runtime all of it comes through SimplerSimHooks. A stand-alone program registers nothing; then every
// thread is a core of its own with one set of memories, allocated at first use and freed when the thread ends.
#pragma once

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../../kernel/sim_hooks.h"
#include "prelude.hpp"

// Functions marked so have their loops vectorised at the kernel compiler's -O2 as well; there g++ vectorises next to
// nothing by itself. no-trapping-math only says that nobody reads the floating-point exception flags: results are
// unchanged. A loop that is inlined into such a function has to carry the same marks (PTO_LOOP_PART), or it arrives
// with branches that were decided on by other rules.
#if defined(__clang__)
#define PTO_LOOP __attribute__((noinline))
#define PTO_LOOP_PART inline __attribute__((always_inline))
#define PTO_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#define PTO_UNROLLED _Pragma("clang loop unroll(full)")
#pragma clang diagnostic ignored "-Wpass-failed"  // not every operation has a vector form
#elif defined(__GNUC__)
#define PTO_LOOP __attribute__((noipa, optimize("O3", "no-trapping-math")))  // noipa: one copy, not one per constant
#define PTO_LOOP_PART inline __attribute__((always_inline, optimize("O3", "no-trapping-math")))
#define PTO_INDEPENDENT _Pragma("GCC ivdep")
#define PTO_UNROLLED _Pragma("GCC unroll 16")
#endif
// 0: tile instructions take their operands as they are. Whoever compiles a kernel says so (--no-tile-checks).
#if !defined(SIMPLER_TILE_CHECKS)
#define SIMPLER_TILE_CHECKS 1
#endif
// 1: the kernel runs inside the simulator only, whose hooks are complete: what they bring along is not compiled into the
// kernel once more. simpler's kernel compiler says so; other programs stand alone, or take hooks as they come.
#if !defined(SIMPLER_TILE_HOSTED)
#define SIMPLER_TILE_HOSTED 0
#endif
#define PTO_HIDDEN __attribute__((weak, visibility("hidden")))
#if !defined(PTO_EXPORT)
#define PTO_EXPORT __attribute__((used, weak, visibility("default")))
#endif

namespace pto {
namespace tile_detail {

constexpr bool kChecks = SIMPLER_TILE_CHECKS != 0;
constexpr bool kHosted = SIMPLER_TILE_HOSTED != 0;

// One copy per shared object: hidden, so that kernels loaded side by side do not see each other's.
struct SimState {
  SimplerSimHooks hooks;
  uint32_t (*vendor_sub_block_id)();
  void* (*vendor_pipe_state)(uint64_t key, size_t bytes);
};
PTO_HIDDEN SimState sim_state = {};

// Ends the kernel with one formatted sentence. Inside the runtime that is the run's error text.
[[noreturn]] __attribute__((cold, noinline, format(printf, 1, 2))) inline void fail(const char* format, ...) {
  char text[640];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (sim_state.hooks.check_failed != nullptr) sim_state.hooks.check_failed(text);
  fprintf(stderr, "tile library: %s\n", text);
  abort();
}

inline uint32_t sub_block_id() {
  if (sim_state.hooks.sub_block_id != nullptr) return sim_state.hooks.sub_block_id();
  if (sim_state.vendor_sub_block_id != nullptr) return sim_state.vendor_sub_block_id();
  return 0;
}

// ---- memories ---------------------------------------------------------------------------------------------------
struct Memory {
  unsigned char* base;
  uint64_t bytes;
};

// The stand-alone core of one thread.
struct ThreadMemory {
  void* block = nullptr;
  Memory memory[SIMPLER_TILE_MEMORY_COUNT] = {};

  ThreadMemory() {
    const uint32_t bytes[] = SIMPLER_TILE_MEMORY_BYTES_INIT;
    const char* const overrides[] = {"PTO_CPU_SIM_UB_BYTES",
                                     "PTO_CPU_SIM_L1_BYTES",
                                     "PTO_CPU_SIM_L0A_BYTES",
                                     "PTO_CPU_SIM_L0B_BYTES",
                                     "PTO_CPU_SIM_L0C_BYTES",
                                     nullptr,
                                     nullptr};
    uint64_t total = 64;
    for (int i = 0; i < SIMPLER_TILE_MEMORY_COUNT; ++i) {
      const char* text = overrides[i] != nullptr ? getenv(overrides[i]) : nullptr;
      const unsigned long long wanted = text != nullptr ? strtoull(text, nullptr, 0) : 0;
      if (text != nullptr && (wanted == 0 || wanted > (1ull << 32)))
        fail("%s=%s is not a memory size; give bytes, 1 to 4294967296", overrides[i], text);
      memory[i].bytes = text != nullptr ? wanted : bytes[i];
      total += (memory[i].bytes + 63) & ~uint64_t{63};
    }
    block = calloc(total, 1);
    if (block == nullptr) fail("no memory for the tile memories of a thread: %llu bytes", (unsigned long long)total);
    unsigned char* next = reinterpret_cast<unsigned char*>((reinterpret_cast<uintptr_t>(block) + 63) & ~uintptr_t{63});
    for (Memory& m : memory) {
      m.base = next;
      next += (m.bytes + 63) & ~uint64_t{63};
    }
  }
  ~ThreadMemory() { free(block); }
  ThreadMemory(const ThreadMemory&) = delete;
  ThreadMemory& operator=(const ThreadMemory&) = delete;
};

__attribute__((noinline, visibility("hidden"))) inline Memory thread_memory(uint32_t location) {
  static thread_local ThreadMemory own;
  return own.memory[location];
}

// Memory `location` of the core that runs on this thread. Asked for at every use, never kept: the next kernel call on
// this thread may belong to another simulated core.
inline Memory core_memory(uint32_t location) {
  if constexpr (!kHosted)
    if (sim_state.hooks.tile_memory == nullptr) return thread_memory(location);
  Memory memory = {nullptr, 0};
  memory.base = static_cast<unsigned char*>(sim_state.hooks.tile_memory(location, &memory.bytes));
  return memory;
}

// ---- waiting ----------------------------------------------------------------------------------------------------
inline void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("yield");
#endif
}

// Waiting for a word that another core changes: spin, then park (inside the runtime) or yield and sleep (alone).
// wait(word, seen) returns at some time; the caller tests its condition and calls again.
class Waiter {
 public:
  void wait(const volatile uint32_t* word, uint32_t seen) {
    ++rounds_;
    if (rounds_ < kSpins) return cpu_relax();
    if (sim_state.hooks.park != nullptr) return sim_state.hooks.park(word, seen);
    if (rounds_ < kSpins + kYields) {
      sched_yield();
      return;
    }
    const timespec pause = {0, kSleepNanoseconds};
    nanosleep(&pause, nullptr);
    ++sleeps_;
  }
  // Times that this waiter slept; stays 0 inside the runtime, which has a watchdog of its own.
  uint64_t sleeps() const { return sleeps_; }
  static constexpr long kSleepNanoseconds = 50000;

 private:
  static constexpr uint64_t kSpins = 200;   // a few microseconds: a partner that is about to write
  static constexpr uint64_t kYields = 200;  // a partner that shares this host core
  uint64_t rounds_ = 0, sleeps_ = 0;
};

inline void wake(const volatile uint32_t* word) {
  if (sim_state.hooks.unpark != nullptr) sim_state.hooks.unpark(word);
}

// Memory shared by the cores of one block, see SimplerSimHooks::pipe_state.
inline void* pipe_state(uint64_t key, uint64_t bytes) {
  void* state = nullptr;
  if (sim_state.hooks.pipe_state != nullptr)
    state = sim_state.hooks.pipe_state(key, bytes);
  else if (sim_state.vendor_pipe_state != nullptr)
    state = sim_state.vendor_pipe_state(key, bytes);
  if (state == nullptr)
    fail(
        "TPipe: no memory shared by the cores of a block; pipes work in tasks that run on a cube core and its vector "
        "cores together");
  return state;
}

}  // namespace tile_detail
}  // namespace pto

// ---- exports ------------------------------------------------------------------------------------------------------
extern "C" {
// Called by the simulator right after it has loaded a kernel. The table is copied.
PTO_EXPORT void simpler_sim_register_hooks(const SimplerSimHooks* hooks) {
  if (hooks->version != SIMPLER_SIM_HOOKS_VERSION) {
    fprintf(stderr, "tile library: hooks of version %u ignored, this kernel knows version %u; rebuild the kernel\n",
            hooks->version, SIMPLER_SIM_HOOKS_VERSION);
    return;
  }
  SimplerSimHooks table = {};
  const uint32_t known = static_cast<uint32_t>(sizeof table);
  __builtin_memcpy(&table, hooks, hooks->size < known ? hooks->size : known);
  pto::tile_detail::sim_state.hooks = table;
}
// The same for hosts that know only the lane and the pipe memory: uint32_t () and void* (uint64_t key, size_t bytes).
PTO_EXPORT void pto_sim_register_hooks(void* get_subblock_id, void* get_pipe_shared_state) {
  pto::tile_detail::sim_state.vendor_sub_block_id = reinterpret_cast<uint32_t (*)()>(get_subblock_id);
  pto::tile_detail::sim_state.vendor_pipe_state = reinterpret_cast<void* (*)(uint64_t, size_t)>(get_pipe_shared_state);
}
}

// ---- core identity ----------------------------------------------------------------------------------------------
// The forms without arguments exist on the chip; blocks are numbered by the forms that take the kernel's arguments.
inline uint32_t get_subblockid() { return pto::tile_detail::sub_block_id(); }
inline int64_t get_subblockdim() { return 1; }
inline int64_t get_block_idx() { return 0; }
inline int64_t get_block_num() { return 1; }
// The chip's system counter; here nanoseconds.
inline int64_t get_sys_cnt() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
}
