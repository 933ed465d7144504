#include "driver/fault/fault_driver.h"

#include <algorithm>
#include <thread>
#include <tuple>
#include <type_traits>

#include "base/status.h"
#include "base/thread_serial.h"

namespace simpler::driver {
namespace {

std::string& injected_error() {
  thread_local std::string text;  // of the last call if a rule failed it, else empty
  return text;
}

// Calls that carry their time limit as last argument.
constexpr bool waits(Call call) {
  return call == Call::k_stream_sync || call == Call::k_event_sync || call == Call::k_sync_device;
}
constexpr bool copies(Call call) { return call == Call::k_copy_to_device || call == Call::k_copy_from_device; }
// Calls about the device that they name, not the thread's.
constexpr bool names_device(Call call) {
  return call == Call::k_set_device || call == Call::k_reset_device || call == Call::k_force_reset;
}
// What still works on a device that is in error.
constexpr bool works_when_sticky(Call call) {
  return names_device(call) || call == Call::k_set_log_level || call == Call::k_acl_init ||
         call == Call::k_acl_finalize;
}

template <class... Args> auto last(Args... args) { return std::get<sizeof...(Args) - 1>(std::tuple(args...)); }
template <class... Args> auto first(Args... args) { return std::get<0>(std::tuple(args...)); }

template <Call id, class... Args> std::uint64_t bytes_of(Args... args) {
  if constexpr (id == Call::k_alloc) return first(args...);
  if constexpr (copies(id)) return last(args...);
  return 0;
}

// Takes back what a creating call made.
template <Call id, class... Args> void undo(const Driver& d, Args... args) {
  if constexpr (id == Call::k_set_device) d.reset_device(d.self, first(args...));
  if constexpr (id == Call::k_alloc) d.free(d.self, *last(args...));
  if constexpr (id == Call::k_map_host) d.unmap_host(d.self, first(args...));
  if constexpr (id == Call::k_stream_create) d.stream_destroy(d.self, *last(args...));
  if constexpr (id == Call::k_event_create) d.event_destroy(d.self, *last(args...));
  if constexpr (id == Call::k_child_code_resolve) d.child_code_release(d.self, *last(args...));
  if constexpr (id == Call::k_cpu_load) d.cpu_unload(d.self, *last(args...));
  if constexpr (id == Call::k_dma_provision) d.dma_release(d.self, *last(args...));
}

}  // namespace

const char* name_of(Call call) {
  static constexpr const char* kNames[] = {
#define SIMPLER_DRIVER_CALL_NAME(entry) #entry,
      SIMPLER_DRIVER_CALLS(SIMPLER_DRIVER_CALL_NAME)
#undef SIMPLER_DRIVER_CALL_NAME
  };
  return kNames[static_cast<int>(call)];
}

const char* name_of(Fault fault) {
  static constexpr const char* kNames[] = {"before", "after", "delay", "hang", "sticky", "short copy"};
  return kNames[static_cast<int>(fault)];
}

template <auto Member, Call id> struct FaultDriver::Forward {
  template <class... Args> static constexpr auto pointer(int (*Driver::*)(void*, Args...)) {
    return +[](void* self, Args... args) { return static_cast<FaultDriver*>(self)->run<id, Args...>(Member, args...); };
  }
};

FaultDriver::FaultDriver(const Driver& inner, std::vector<FaultRule> rules) : inner_(inner) {
  set_rules(std::move(rules));
  table_.name = "fault";
  table_.self = this;
  table_.capabilities = inner.capabilities;
  table_.recent_error = [](void* self) {
    const Driver& d = static_cast<FaultDriver*>(self)->inner_;
    return injected_error().empty() ? d.recent_error(d.self) : injected_error().c_str();
  };
#define SIMPLER_DRIVER_WRAP(entry) table_.entry = Forward<&Driver::entry, Call::k_##entry>::pointer(&Driver::entry);
  SIMPLER_DRIVER_CALLS(SIMPLER_DRIVER_WRAP)
#undef SIMPLER_DRIVER_WRAP
}

template <Call id, class... Args> int FaultDriver::run(int (*Driver::*entry)(void*, Args...), Args... args) {
  int device = device_of_thread();
  if constexpr (names_device(id)) device = first(args...);
  bool sticky = false;
  FaultRule rule;
  const bool hit = decide(id, device, &sticky, &rule);
  injected_error().clear();
  const auto inner = [&] { return (inner_.*entry)(inner_.self, args...); };
  const auto refuse = [&](int code) {
    injected_error() = format("%s fails on request", name_of(id));
    return code;
  };
  int code = kOk;
  if (sticky) {
    code = kDriverInternal;
    injected_error() = format("device %d is in error on request", device);
  } else if (!hit) {
    code = inner();
  } else {
    switch (rule.fault) {
      case Fault::kBefore:
      case Fault::kSticky: code = refuse(rule.code); break;
      case Fault::kAfter:
        code = inner();
        if (code == kOk) {
          undo<id>(inner_, args...);
          code = refuse(rule.code);
        }
        break;
      case Fault::kDelay:
        std::this_thread::sleep_for(rule.delay);
        code = inner();
        break;
      case Fault::kHang:
        if constexpr (waits(id)) {
          if (const auto limit = last(args...); limit >= 0) {
            const std::chrono::milliseconds whole(limit);
            std::this_thread::sleep_for(rule.delay.count() > 0 ? std::min(rule.delay, whole) : whole);
            code = refuse(id == Call::k_event_sync ? kEventSyncTimeout : kSyncTimeout);
            break;
          }
        }
        std::this_thread::sleep_for(rule.delay);
        code = refuse(rule.code);
        break;
      case Fault::kShortCopy:
        if constexpr (copies(id)) {
          const auto& [to, from, bytes] = std::tuple(args...);
          static_cast<void>((inner_.*entry)(inner_.self, to, from, bytes / 2));
        }
        code = refuse(rule.code);
        break;
    }
  }
  if (id == Call::k_set_device && code == kOk) {
    const std::lock_guard lock(mutex_);
    devices_[thread_serial()] = device;
  }
  if (id == Call::k_force_reset && code == kOk) {
    const std::lock_guard lock(mutex_);
    sticky_.erase(device);
  }
  record({id, device, code, sticky || hit, thread_serial(), bytes_of<id>(args...)});
  return code;
}

// Whether a rule hits the call; *rule: a copy, since rules may be replaced meanwhile. *sticky: the device is in error.
bool FaultDriver::decide(Call call, int device, bool* sticky, FaultRule* rule) {
  const std::lock_guard lock(mutex_);
  if (sticky_.count(device) != 0 && !works_when_sticky(call)) {
    *sticky = true;
    return false;
  }
  for (Armed& armed : rules_) {
    const FaultRule& candidate = armed.rule;
    if (!candidate.call.empty() && candidate.call != name_of(call)) continue;
    if (candidate.device >= 0 && candidate.device != device) continue;
    ++armed.seen;
    if (armed.left == 0) {
      const bool draws = candidate.nth == 0;
      if (!draws && armed.seen != candidate.nth) continue;
      if (draws && std::generate_canonical<double, 53>(armed.random) >= candidate.probability) continue;
      armed.left = candidate.times;
    }
    if (armed.left > 0) --armed.left;
    if (candidate.fault == Fault::kSticky) sticky_.insert(device);
    *rule = candidate;
    return true;
  }
  return false;
}

int FaultDriver::device_of_thread() const {
  const std::lock_guard lock(mutex_);
  const auto found = devices_.find(thread_serial());
  return found == devices_.end() ? -1 : found->second;
}

void FaultDriver::record(const CallRecord& record) {
  const std::lock_guard lock(mutex_);
  log_.push_back(record);
}

std::vector<CallRecord> FaultDriver::log() const {
  const std::lock_guard lock(mutex_);
  return log_;
}
std::size_t FaultDriver::calls(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::count_if(log_.begin(), log_.end(), [&](const CallRecord& record) {
    return name.empty() || name == name_of(record.call);
  }));
}
std::size_t FaultDriver::injected() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(log_.begin(), log_.end(), [](const CallRecord& record) { return record.injected; }));
}
void FaultDriver::clear_log() {
  const std::lock_guard lock(mutex_);
  log_.clear();
}
void FaultDriver::disarm() {
  const std::lock_guard lock(mutex_);
  rules_.clear();
}
void FaultDriver::set_rules(std::vector<FaultRule> rules) {
  const std::lock_guard lock(mutex_);
  rules_.clear();
  sticky_.clear();
  for (FaultRule& rule : rules) {
    Armed armed;
    armed.random.seed(rule.seed);
    armed.rule = std::move(rule);
    rules_.push_back(std::move(armed));
  }
}

}  // namespace simpler::driver
