// What the C functions share: a context, the record of the last failure, and the guards around each call.
//
// Threads   A context's runner may be finalized by one thread while others are inside: each call keeps it alive, and the
//           runner refuses those that come too late.
#pragma once
#include <unistd.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "base/status.h"
#include "host/device_runner.h"

namespace simpler::c_api {

// ---- the calling thread's last failure ----

struct LastError {
  std::string text;
  ErrorKind kind = ErrorKind::kRun;
  int code = 0;
};
LastError& last_error();

int note(Status status);  // its code
inline int refuse(ErrorKind kind, std::string text) { return note(fail(kind, std::move(text))); }
inline int code_of(Status status) { return status.ok() ? 0 : note(std::move(status)); }

// Runs `call`; an exception, which no C caller could catch, becomes `failure`.
template <class Call, class Result> Result guarded(Result failure, Call call) noexcept {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    refuse(ErrorKind::kMemory, "the host has no memory left");
  } catch (const std::exception& error) {
    refuse(ErrorKind::kState, error.what());
  } catch (...) {
    refuse(ErrorKind::kState, "an exception of unknown type");
  }
  return failure;
}

// ---- contexts ----

class Context {
 public:
  Context(const char* platform, const char* runtime) {
    options_.platform = platform;
    options_.runtime = runtime;
  }

  host::RunnerOptions& options() { return options_; }
  bool simulated() const;
  bool inherited() const { return getpid() != owner_pid_; }
  bool outstanding() const {
    const auto now = runner();
    return now != nullptr && now->outstanding();
  }

  // nullptr: not initialised.
  std::shared_ptr<host::DeviceRunner> runner() const {
    const std::lock_guard lock(mutex_);
    return runner_;
  }
  void set(std::shared_ptr<host::DeviceRunner> runner) {
    const std::lock_guard lock(mutex_);
    runner_ = std::move(runner);
    was_initialised_ = true;
  }
  // Ends the runner that is given and forgets it.
  Status finalize(host::DeviceRunner& runner);
  Status missing() const;  // why there is no runner

  std::uint64_t past_host_loads() const { return past_host_loads_; }

 private:
  host::RunnerOptions options_;  // its programs are empty but during initialisation
  const pid_t owner_pid_ = getpid();
  mutable std::mutex mutex_;
  std::shared_ptr<host::DeviceRunner> runner_;
  bool was_initialised_ = false;
  std::uint64_t past_host_loads_ = 0;  // of runners that are gone
};

inline Context* context_of(void* context) { return static_cast<Context*>(context); }

// Calls with a context of this process.
template <class Call> int with_context(void* context, Call call) noexcept {
  return guarded(-1, [&]() -> int {
    if (context == nullptr) return refuse(ErrorKind::kValue, "the context is null");
    if (context_of(context)->inherited()) return note(host::DeviceRunner::inherited_error());
    return call(*context_of(context));
  });
}
// Calls with the runner of an initialised context.
template <class Call> int with_runner(void* context, Call call) noexcept {
  return with_context(context, [&](Context& owner) -> int {
    const std::shared_ptr<host::DeviceRunner> runner = owner.runner();
    return runner == nullptr ? note(owner.missing()) : call(owner, *runner);
  });
}
// A number that is 0 where there is no runner.
template <class Call> std::uint64_t fact_of(void* context, Call call) noexcept {
  return guarded(std::uint64_t{0}, [&]() -> std::uint64_t {
    if (context == nullptr || context_of(context)->inherited()) return 0;
    const std::shared_ptr<host::DeviceRunner> runner = context_of(context)->runner();
    return runner == nullptr ? 0 : call(*runner);
  });
}

}  // namespace simpler::c_api
