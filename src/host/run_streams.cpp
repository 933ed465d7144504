#include "host/run_streams.h"

namespace simpler::host {

using driver::Driver;

Status RunStreams::ensure(bool stop_on_failure) {
  const std::lock_guard lock(mutex_);
  if (owner_ != 0) return fail(ErrorKind::kState, "the streams belong to a run that is not retired yet");
  const auto make = [&](OwnedStream& stream) {
    OwnedStream fresh(device_);
    Status status = device_.run("stream_create", &Driver::stream_create, fresh.receive());
    if (!status.ok()) {
      *fresh.receive() = nullptr;
      return status;
    }
    if (stop_on_failure) status = device_.run("stream_stop_on_failure", &Driver::stream_stop_on_failure, fresh.get());
    if (status.ok()) stream = std::move(fresh);
    return status;
  };
  if (!cpu_) {
    if (Status status = make(cpu_); !status.ok()) return status;
  }
  if (core_ && !stale_) return Status();
  if (core_) {
    if (const int code = core_.release(); code != driver::kOk) return device_.failure("stream_destroy", code);
  }
  if (Status status = make(core_); !status.ok()) return status;
  stale_ = false;
  created_.fetch_add(1);
  return Status();
}

void RunStreams::mark_submitted(std::uint64_t owner) {
  const std::lock_guard lock(mutex_);
  owner_ = owner;
  complete_ = false;
}

RunStreams::Poll RunStreams::poll(int* code) {
  *code = -1;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return Poll::kNotReady;
  if (owner_ == 0) return Poll::kError;
  if (complete_) return Poll::kComplete;
  // Both are always asked: an error of either one counts.
  const int codes[] = {device_.call(&Driver::stream_query, cpu_.get()),
                       device_.call(&Driver::stream_query, core_.get())};
  for (const int each : codes) {
    if (each != driver::kOk && each != driver::kStreamNotComplete) {
      *code = each;
      return Poll::kError;
    }
  }
  complete_ = codes[0] == driver::kOk && codes[1] == driver::kOk;
  return complete_ ? Poll::kComplete : Poll::kNotReady;
}

Status RunStreams::retire(Retired how, std::uint64_t owner) {
  const std::lock_guard lock(mutex_);
  if (owner_ == 0 || owner != owner_) return Status();
  owner_ = 0;
  complete_ = false;
  if (how == Retired::kComplete) return Status();
  stale_ = true;
  if (const int code = core_.release(); code != driver::kOk) return device_.failure("stream_destroy", code);
  return Status();
}

int RunStreams::destroy() {
  const std::lock_guard lock(mutex_);
  owner_ = 0;
  const int first = cpu_.release();
  const int second = core_.release();
  return first != driver::kOk ? first : second;
}

}  // namespace simpler::host
