// The device's system counter, as orchestrations and the device's own processors read it.
//
// Units     Ticks of get_sys_cnt_aicpu_frequency_hz() per second: 50 MHz on a2a3, 1 GHz on a5. The origin is arbitrary; only
//           differences within one run mean something. The simulator rescales the host's monotonic clock.
// Threads   Any.
#pragma once
#include <cstdint>
#include <ctime>

inline uint64_t get_sys_cnt_aicpu_frequency_hz() {
#if defined(SIMPLER_ARCH_A5)
  return 1000000000u;
#else
  return 50000000u;
#endif
}
inline uint64_t get_sys_cnt_aicpu() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const uint64_t ticks_per_second = get_sys_cnt_aicpu_frequency_hz();
  return static_cast<uint64_t>(now.tv_sec) * ticks_per_second +
         static_cast<uint64_t>(now.tv_nsec) / (1000000000u / ticks_per_second);
}

// Nanoseconds of a number of ticks at a frequency; 0 if the frequency is 0. Whole seconds first, so nothing overflows.
inline uint64_t sys_cnt_ticks_to_ns(uint64_t ticks, uint64_t frequency_hz) {
  if (frequency_hz == 0) return 0;
  return ticks / frequency_hz * 1000000000u + ticks % frequency_hz * 1000000000u / frequency_hz;
}
// Between two readings; 0 if the second is not the later one.
inline uint64_t sys_cnt_elapsed_ns(uint64_t begin, uint64_t end, uint64_t frequency_hz) {
  return end > begin ? sys_cnt_ticks_to_ns(end - begin, frequency_hz) : 0;
}

// Other names of the same counter.
inline uint64_t sys_cnt_now_ticks() { return get_sys_cnt_aicpu(); }
inline uint64_t device_time_now_ticks() { return get_sys_cnt_aicpu(); }
inline uint64_t device_time_frequency_hz() { return get_sys_cnt_aicpu_frequency_hz(); }
