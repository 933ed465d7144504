#include "host/ring_config.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/log.h"

namespace simpler::host {
namespace {

using Entries = std::uint64_t[abi::kRuntimeEnvRingCount];

// Reads "n" or "n,n,n,n", none of them 0. False if the text is anything else.
bool parse(const char* text, Entries& entries) {
  int count = 0;
  for (const char* at = text; count < abi::kRuntimeEnvRingCount; ++count) {
    if (*at < '0' || *at > '9') return false;
    char* end = nullptr;
    errno = 0;
    entries[count] = std::strtoull(at, &end, 10);
    if (errno != 0 || entries[count] == 0) return false;
    if (*end == '\0') {
      if (count == 0) {
        for (std::uint64_t& entry : entries) entry = entries[0];
        return true;
      }
      return count == abi::kRuntimeEnvRingCount - 1;
    }
    if (*end != ',') return false;
    at = end + 1;
  }
  return false;
}

// One resource: its variable, its default, and where it stands in a RuntimeEnv.
struct Row {
  const char* variable;
  std::uint64_t fallback;
  Entries abi::RuntimeEnv::*entries;
};
constexpr Row kRows[] = {
    {"PTO2_RING_TASK_WINDOW", 16384, &abi::RuntimeEnv::ring_task_window},
    {"PTO2_RING_HEAP", std::uint64_t{256} << 20, &abi::RuntimeEnv::ring_heap},
    {"PTO2_RING_DEP_POOL", abi::kDefaultDepPool, &abi::RuntimeEnv::ring_dep_pool},
};

}  // namespace

abi::RuntimeEnv resolve_rings(const abi::RuntimeEnv& configured) {
  abi::RuntimeEnv result = configured;
  for (const Row& row : kRows) {
    abi::RuntimeEnv from_environment{};
    const char* text = std::getenv(row.variable);
    if (text != nullptr && *text != '\0') {
      if (!parse(text, from_environment.*row.entries)) {
        log::host(log::Level::kWarn, __func__,
                  "%s=%s is ignored: it must be one whole number greater than 0, or four separated by commas",
                  row.variable, text);
        from_environment = {};
      } else if (const abi::Verdict verdict = abi::check_runtime_env(from_environment); !verdict.ok()) {
        log::host(log::Level::kWarn, __func__, "%s=%s is ignored: %s", row.variable, text, verdict.text());
        from_environment = {};
      }
    }
    for (int i = 0; i < abi::kRuntimeEnvRingCount; ++i) {
      std::uint64_t& entry = (result.*row.entries)[i];
      if (entry == 0) entry = (from_environment.*row.entries)[i];
      if (entry == 0) entry = row.fallback;
    }
  }
  return result;
}

}  // namespace simpler::host
