#include "c_api/context.h"

#include <string_view>

namespace simpler::c_api {

LastError& last_error() {
  thread_local LastError error;
  return error;
}

int note(Status status) {
  last_error() = {status.message(), status.kind(), status.code()};
  return status.code();
}

bool Context::simulated() const {
  constexpr std::string_view kSuffix = "sim";
  const std::string_view platform = options_.platform;
  return platform.size() > kSuffix.size() && platform.substr(platform.size() - kSuffix.size()) == kSuffix;
}

Status Context::finalize(host::DeviceRunner& runner) {
  Status status = runner.finalize();
  const std::lock_guard lock(mutex_);
  if (runner_.get() == &runner) {  // else another thread was first
    past_host_loads_ += runner.host_orchestration_loads();
    runner_.reset();
  }
  return status;
}

Status Context::missing() const {
  const std::lock_guard lock(mutex_);
  return fail(ErrorKind::kState, was_initialised_ ? "the device runner is finalized"
                                                  : "the context is not initialised: call simpler_init first");
}

}  // namespace simpler::c_api
