#include "abi/call_config.h"

#include <cinttypes>
#include <cstring>

namespace simpler::abi {
namespace {

struct RingRule {
  const char* name;
  const std::uint64_t* values;
  std::uint64_t min;
  std::uint64_t max;
  bool power_of_two;
  const char* allowed;
};

}  // namespace

Verdict check_runtime_env(const RuntimeEnv& env) {
  const RingRule rules[] = {
      {"ring_task_window", env.ring_task_window, kRingTaskWindowMin, kRingCountMax, true,
       "0 (default) or a power of two from 4 to 2^30 tasks"},
      {"ring_heap", env.ring_heap, kRingHeapMin, UINT64_MAX, false, "0 (default) or at least 1024 bytes"},
      {"ring_dep_pool", env.ring_dep_pool, kRingDepPoolMin, kRingCountMax, false,
       "0 (default) or 4 to 2147483647 edges"},
  };
  for (const RingRule& rule : rules) {
    for (int ring = 0; ring < kRuntimeEnvRingCount; ++ring) {
      const std::uint64_t value = rule.values[ring];
      if (value == 0) continue;
      const bool in_range = value >= rule.min && value <= rule.max;
      if (in_range && (!rule.power_of_two || (value & (value - 1)) == 0)) continue;
      return Verdict::invalid("runtime_env.%s[%d] is %" PRIu64 "; allowed: %s", rule.name, ring, value, rule.allowed);
    }
  }
  return Verdict::valid();
}

Verdict check_call_config(const CallConfig& config) {
  if (std::memchr(config.output_prefix, '\0', kOutputPrefixBytes) == nullptr) {
    return Verdict::invalid("output_prefix is not terminated; it holds at most %d bytes", kOutputPrefixBytes - 1);
  }
  if (config.any_diagnostic() && config.output_prefix[0] == '\0') {
    return Verdict::invalid(
        "a diagnostic is on (enable_chip_swimlane=%d, enable_dump_args=%d, enable_pmu=%d, enable_dep_gen=%d, "
        "enable_scope_stats=%d) but output_prefix is empty; set output_prefix to the folder for its files",
        config.enable_chip_swimlane, config.enable_dump_args, config.enable_pmu, config.enable_dep_gen,
        config.enable_scope_stats);
  }
  return check_runtime_env(config.runtime_env);
}

}  // namespace simpler::abi
