// log: one logger for the process. A record is one write to stderr, so lines of several processes do not mix.
//
// What      [mono_ns=<n>][T0x<thread>][LEVEL] <function>: <text>   for the host,
//           [LEVEL] <function>: <text> [thread=0x<thread> device=<n> ...]
//                                                             for what device programs and orchestrations say.
//           Readers of device records look for their beginning, so where a record comes from stands at its end.
// Levels    Those of Python's logging: DEBUG 10, INFO 20, TIMING 25, WARN 30, ERROR 40, NUL 60 (mutes all).
// Threads   Any. No lock is held across a fork: a record is formatted on the stack and written at once.
#pragma once
#include <cstdarg>
#include <cstdint>

namespace simpler::log {

enum class Level : int { kDebug = 10, kInfo = 20, kTiming = 25, kWarn = 30, kError = 40, kNul = 60 };

// What the loggers of a process share, for libraries that each have their own.
struct State {
  std::uint32_t abi_version = 1;
  std::uint32_t size = sizeof(State);
  std::int32_t threshold = static_cast<std::int32_t>(Level::kTiming);  // records below it are dropped
  std::int32_t clock_anchor_pid = 0;                                   // of the process whose clocks were told last
};
// From now on the state is somebody else's, who keeps it for good.
void bind(State* state);

bool is_level(int number);
void set_threshold(int level);
int threshold();
// Whether the calling process, which a fork makes another one, has yet to tell how its clocks relate; true once.
bool claim_clock_anchor();
inline bool enabled(Level level) { return static_cast<int>(level) >= threshold(); }

[[gnu::format(printf, 3, 4)]] void host(Level level, const char* function, const char* pattern, ...);

// Where a device record comes from, beside the calling thread. Facts that are -1 are not told.
struct Origin {
  int device = -1;
  std::int64_t submitted = -1;  // an orchestration: tasks so far
  // A block of a task.
  int ring = -1;
  std::int64_t task = -1;  // number in its ring
  int kernel = -1, block = -1, core = -1;
};
void device_v(Level level, const Origin& origin, const char* function, const char* pattern, va_list values);
[[gnu::format(printf, 4, 5)]] void device(Level level, const Origin& origin, const char* function, const char* pattern,
                                          ...);

}  // namespace simpler::log
