#include "host/recovery.h"

#include "base/log.h"
#include "host/acl_guard.h"

namespace simpler::host {
namespace {

using driver::Driver;

constexpr std::size_t kProbeBytes = 64;

// A reference to the device, given back at the end unless a reset took it.
class BindGuard {
 public:
  explicit BindGuard(Device& device) : device_(device), code_(device.call(&Driver::set_device, device.ordinal())) {}
  ~BindGuard() {
    if (code_ == driver::kOk && !dismissed_) static_cast<void>(device_.call(&Driver::reset_device, device_.ordinal()));
  }
  int code() const { return code_; }
  void dismiss() { dismissed_ = true; }

 private:
  Device& device_;
  const int code_;
  bool dismissed_ = false;
};

// What the first call that does not work answers.
int probe(Device& device) {
  const BindGuard bound(device);
  if (bound.code() != driver::kOk) return bound.code();
  driver::Stream* stream = nullptr;
  if (const int code = device.call(&Driver::stream_create, &stream); code != driver::kOk) return code;
  if (const int code = device.call(&Driver::stream_destroy, stream); code != driver::kOk) return code;
  std::uint64_t address = 0;
  if (const int code = device.call(&Driver::alloc, kProbeBytes, &address); code != driver::kOk) return code;
  return device.call(&Driver::free, address);
}

int attempt(Device& device, std::int32_t limit_ms, const char** step) {
  const AclGuard acl(device);
  *step = "acl_init";
  if (!acl.ready()) return acl.code();
  {
    BindGuard bound(device);
    *step = "set_device";
    if (bound.code() != driver::kOk) return bound.code();
    static_cast<void>(device.call(&Driver::sync_device, limit_ms));  // what it still did need not have gone well
    *step = "force_reset";
    if (const int code = device.call(&Driver::force_reset, device.ordinal()); code != driver::kOk) return code;
    bound.dismiss();
  }
  *step = "probe after force_reset";
  return probe(device);
}

}  // namespace

void give_up(Device& device, const std::string& why, std::int32_t limit_ms) {
  if (!device.owns()) return;
  const int code = device.call(&Driver::sync_device, limit_ms);
  log::host(log::Level::kWarn, __func__, "device %d in doubt: waiting for it %s (%d)", device.ordinal(),
            code == driver::kOk ? "ended well" : "failed", code);
  device.mark_unusable(why);
}

Status force_reset(Device& device, int attempts, std::int32_t limit_ms) {
  int code = driver::kOk;
  const char* step = "";
  for (int i = 0; i < attempts; ++i) {
    code = attempt(device, limit_ms, &step);
    if (code == driver::kOk) return Status();
  }
  return Status(
      ErrorKind::kDevice, code,
      format("device %d stays quarantined: %s failed: %d%s%s. Its memory, code and threads are left alone; use "
             "another device, or end this process",
             device.ordinal(), step, code, *driver::meaning_of(code) != '\0' ? ": " : "", driver::meaning_of(code)));
}

}  // namespace simpler::host
