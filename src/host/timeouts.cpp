#include "host/timeouts.h"

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <optional>

#include "base/log.h"

namespace simpler::host {
namespace {

constexpr std::uint64_t kDefaultSchedulerMs = 10'000;
constexpr std::uint64_t kArmingGuardMs = 1'500;

// The variable's value; nothing if it is unset, or not a number in 1..most, which is said.
std::optional<std::uint64_t> number(const char* variable, std::uint64_t most) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return std::nullopt;
  const char* at = text;
  while (std::isspace(static_cast<unsigned char>(*at))) ++at;
  if (std::isdigit(static_cast<unsigned char>(*at))) {
    char* end = nullptr;
    errno = 0;
    const std::uint64_t value = std::strtoull(at, &end, 10);
    while (std::isspace(static_cast<unsigned char>(*end))) ++end;
    if (errno == 0 && *end == '\0' && value >= 1 && value <= most) return value;
  }
  log::host(log::Level::kWarn, "resolve_timeouts", "%s=%s is ignored: it must be a whole number in 1..%llu", variable,
            text, static_cast<unsigned long long>(most));
  return std::nullopt;
}

// The first rule that is broken; nullptr: none.
const char* broken_order(std::uint64_t op_us, std::uint64_t sync_ms, std::uint64_t scheduler_ms) {
  if (scheduler_ms * 1000 >= op_us)
    return "SIMPLER_SCHEDULER_TIMEOUT_MS must be less than SIMPLER_OP_EXECUTE_TIMEOUT_US";
  if (op_us >= sync_ms * 1000) return "SIMPLER_OP_EXECUTE_TIMEOUT_US must be less than SIMPLER_STREAM_SYNC_TIMEOUT_MS";
  if (sync_ms <= scheduler_ms + kArmingGuardMs)
    return "SIMPLER_STREAM_SYNC_TIMEOUT_MS must exceed SIMPLER_SCHEDULER_TIMEOUT_MS by more than 1500 ms";
  return nullptr;
}

}  // namespace

Timeouts resolve_timeouts(bool simulated) {
  const auto op = number("SIMPLER_OP_EXECUTE_TIMEOUT_US", UINT64_MAX);
  const auto sync = number("SIMPLER_STREAM_SYNC_TIMEOUT_MS", INT32_MAX);
  const auto scheduler = number("SIMPLER_SCHEDULER_TIMEOUT_MS", INT32_MAX);
  Timeouts result;
  if (simulated) {
    result.op_us = op.value_or(0);
    result.sync_ms = -1;
    result.scheduler_ms = static_cast<std::int32_t>(scheduler.value_or(0));
    return result;
  }
  const std::uint64_t op_us = op.value_or(result.op_us);
  const std::uint64_t sync_ms = sync.value_or(static_cast<std::uint64_t>(result.sync_ms));
  if (!op && !sync && !scheduler) return result;
  if (const char* rule = broken_order(op_us, sync_ms, scheduler.value_or(kDefaultSchedulerMs))) {
    log::host(log::Level::kWarn, __func__, "time limits are ignored: %s", rule);
    return result;
  }
  result.op_us = op_us;
  result.sync_ms = static_cast<std::int32_t>(sync_ms);
  result.scheduler_ms = static_cast<std::int32_t>(scheduler.value_or(0));
  return result;
}

}  // namespace simpler::host
