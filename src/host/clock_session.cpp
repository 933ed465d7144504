#include "host/clock_session.h"

#include "host/run_trace.h"

namespace simpler::host {

using driver::Driver;

namespace {
constexpr std::int32_t kEventLimitMs = 1000;
}

void ClockSession::begin(driver::Stream* stream) {
  samples_.clear();
  open_ = true;
  capture(stream, "pre_host_orchestration");
}

void ClockSession::finish(driver::Stream* stream, bool complete) {
  if (!open_) return;
  open_ = false;
  if (complete && device_.owns()) capture(stream, "post_device_execution");
}

void ClockSession::capture(driver::Stream* stream, const char* position) {
  OwnedEvent event(device_);
  const int created = device_.call(&Driver::event_create, event.receive());
  for (int i = 0; i < kSamples; ++i) {
    ClockSample sample;
    sample.position = position;
    sample.index = i;
    sample.host_before_ns = monotonic_ns();
    const auto step = [&](const char* name, int code) {
      if (sample.code != driver::kOk || code == driver::kOk) return;
      sample.failed_step = name;
      sample.code = code;
    };
    step("create", created);
    if (sample.code == driver::kOk) step("record", device_.call(&Driver::event_record, event.get(), stream));
    if (sample.code == driver::kOk) step("sync", device_.call(&Driver::event_sync, event.get(), kEventLimitMs));
    if (sample.code == driver::kOk)
      step("timestamp", device_.call(&Driver::event_timestamp, event.get(), &sample.device_us));
    sample.host_after_ns = monotonic_ns();
    samples_.push_back(sample);
  }
}

}  // namespace simpler::host
