#include "host/device.h"

#include "base/check.h"
#include "base/log.h"

namespace simpler::host {
namespace {

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1);
}

// The Device that this thread called attach() of last.
thread_local std::uint64_t attached = 0;

}  // namespace

Device::Device(const driver::Driver& driver, int ordinal)
    : driver_(driver), ordinal_(ordinal), serial_(next_serial()) {}

void Device::become(State to) {
  static constexpr bool kAllowed[4][4] = {{0, 1, 1, 1}, {0, 0, 1, 1}, {0, 0, 0, 1}, {0, 0, 0, 0}};  // from x to
  static constexpr const char* kNames[] = {"Fresh", "Ready", "Unusable", "Finalized"};
  const State from = state_.exchange(to);
  SIMPLER_CHECK(kAllowed[static_cast<int>(from)][static_cast<int>(to)], "a device runner goes from %s to %s",
                kNames[static_cast<int>(from)], kNames[static_cast<int>(to)]);
}

void Device::mark_unusable(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (!owns()) return;
  why_ = why;
  become(State::kUnusable);
  log::host(log::Level::kError, __func__, "device %d is unusable from now on: %s", ordinal_, why.c_str());
}

std::string Device::why_unusable() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

Status Device::attach() {
  if (attached == serial_) return Status();
  if (Status status = run("set_device", &driver::Driver::set_device, ordinal_); !status.ok()) return status;
  references_.fetch_add(1);
  attached = serial_;
  return Status();
}

int Device::detach_all() {
  int first = driver::kOk;
  for (int left = references_.exchange(0); left > 0; --left) {
    const int code = call(&driver::Driver::reset_device, ordinal_);
    if (code != driver::kOk) static_cast<void>(failure("reset_device", code));
    if (first == driver::kOk) first = code;
  }
  attached = 0;
  return first;
}

Status Device::failure(const char* what, int code) {
  const char* const text = driver_.recent_error(driver_.self);
  const char* const meaning = driver::meaning_of(code);
  std::string message = format("%s failed: %d", what, code);
  if (*meaning != '\0') message += format(" (%s)", meaning);
  if (*text != '\0') message += format(": %s", text);
  if (is_poison(code)) mark_unusable(message);
  // What the device's program refuses, and code that is none, is the caller's mistake, not a code of the device.
  const bool refusal = code == driver::kCpuException || code == driver::kInvalidFunction;
  const ErrorKind kind = code == driver::kOutOfMemory ? ErrorKind::kMemory : ErrorKind::kDevice;
  return Status(kind, refusal ? -1 : code, std::move(message));
}

bool Device::is_poison(int code) {
  switch (code) {
    case driver::kTaskAbort:
    case driver::kCoreTimeout:
    case driver::kCoreException:
    case driver::kCpuTimeout:
    case driver::kDriverInternal: return true;
    default: return false;
  }
}

}  // namespace simpler::host
