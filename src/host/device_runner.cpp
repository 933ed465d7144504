#include "host/device_runner.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>

#include "abi/run_image.h"
#include "base/log.h"
#include "frontend/device_program.h"
#include "host/acl_guard.h"
#include "host/backend.h"
#include "host/recovery.h"
#include "host/runner_parts.h"
#include "host/runs.h"
#include "host/shared_windows.h"

namespace simpler::host {
namespace {

using driver::Driver;

constexpr std::int64_t kFinalizeLimitNs = 10'000'000'000;  // of waiting for a run before its device is given up
constexpr int kResetAttempts = 3;

// The vendor's level for one of ours.
int vendor_level(int threshold) {
  if (threshold <= static_cast<int>(log::Level::kDebug)) return 0;
  if (threshold <= static_cast<int>(log::Level::kInfo)) return 1;
  if (threshold <= static_cast<int>(log::Level::kWarn)) return 2;
  return threshold <= static_cast<int>(log::Level::kError) ? 3 : 4;
}

Status check_slot(int slot) {
  if (slot >= 0 && slot < abi::kMaxCallables) return Status();
  return fail(ErrorKind::kIndex, format("callable slot %d is outside 0..%d", slot, abi::kMaxCallables - 1));
}

}  // namespace

int arena_copies(std::string_view runtime) { return runtime == frontend::kHostBuiltRuntime ? kSlots : 1; }

class DeviceRunner::Impl {
 public:
  Impl(const RunnerOptions& options, std::unique_ptr<Backend> backend)
      : backend_(std::move(backend)),
        parts_(options, backend_->arch(), backend_->clusters(), backend_->driver(),
               options.timeouts.value_or(resolve_timeouts(backend_->simulated()))),
        runs_(parts_) {}
  ~Impl() {
    if (!inherited()) static_cast<void>(finalize());
  }
  bool inherited() const { return getpid() != owner_pid_; }

  Status open() {
    const std::lock_guard lock(parts_.mutex);
    Device& device = parts_.device;
    if (std::getenv("ASCEND_GLOBAL_LOG_LEVEL") == nullptr) {  // before the device is set: it takes the level over then
      if (const int code = device.call(&Driver::set_log_level, vendor_level(log::threshold())); code != driver::kOk)
        log::host(log::Level::kWarn, __func__, "set_log_level failed: %d", code);
    }
    if (Status status = device.attach(); !status.ok()) return status;
    std::uint64_t actual = 0;
    if (const int code = device.call(&Driver::set_op_timeout, parts_.timeouts.op_us, &actual); code != driver::kOk)
      log::host(log::Level::kWarn, __func__, "set_op_timeout failed: %d", code);
    const RunnerOptions& options = parts_.options;
    parts_.bringup.take(backend_->take_binaries());
    if (Status status = parts_.bringup.ensure(); !status.ok()) return status;
    if (options.dma_engines != 0) {
      if (Status status = parts_.bringup.provision_dma(options.dma_engines); !status.ok()) return status;
    }
    if (!device.owns()) return fail(ErrorKind::kDevice, device.why_unusable());
    device.become(Device::State::kReady);
    return Status();
  }

  Status finalize() {
    give_runs_back();
    const std::lock_guard lock(parts_.mutex);
    Device& device = parts_.device;
    if (device.state() == Device::State::kFinalized) return Status();
    Status first;
    const auto note = [&](const char* what, int code) {
      if (code != driver::kOk && first.ok())
        first = Status(ErrorKind::kDevice, code, format("%s failed: %d (%s)", what, code, driver::meaning_of(code)));
    };
    if (device.owns()) {
      if (Status status = device.attach(); !status.ok()) first = status;
      parts_.collectors.release();
      for (auto& [stream, owned] : comm_streams_) note("stream_destroy", owned.release());
      note("stream_destroy", parts_.streams.destroy());
      note("teardown", parts_.bringup.release());
    }
    // From here on each part gives back what it has, or forgets it if the device is in doubt.
    const bool fatal = !device.owns();
    comm_streams_.clear();
    runs_.release();
    parts_.registry.clear();
    parts_.arenas.release();
    parts_.graphs.release();
    parts_.phases.release();
    parts_.collectors.release();
    if (Status status = parts_.allocator.free_all(); !status.ok() && first.ok()) first = status;
    user_memory_.clear();
    if (fatal || !device.owns()) {
      static_cast<void>(parts_.streams.destroy());
      static_cast<void>(parts_.bringup.release());
      first = force_reset(device, parts_.bringup.had_dma() ? 1 : kResetAttempts, parts_.options.recovery_limit_ms);
    } else {
      note("reset_device", device.detach_all());
    }
    acl_.reset();
    device.become(Device::State::kFinalized);
    return first;
  }

  bool usable() const { return parts_.device.state() == Device::State::kReady; }
  bool outstanding() const { return parts_.admission.outstanding(); }

  Status prewarm(const abi::CallConfig& config) {
    const std::lock_guard lock(parts_.mutex);
    if (Status status = require_ready(); !status.ok()) return status;
    return runs_.prewarm(config);
  }
  Status provision_dma(std::uint32_t engines) {
    std::unique_lock<std::mutex> lock;
    if (Status status = lock_while_idle(&lock); !status.ok()) return status;
    return parts_.bringup.provision_dma(engines);
  }
  Status release_dma() {
    std::unique_lock<std::mutex> lock;
    if (Status status = lock_while_idle(&lock); !status.ok()) return status;
    return parts_.bringup.release_dma();
  }
  std::uint32_t dma_engines() const { return parts_.bringup.dma_supported(); }
  std::uint64_t dma_address(int engine) const {
    const std::lock_guard lock(parts_.mutex);
    return parts_.bringup.dma_address(engine);
  }

  // ---- for libraries of communication ----

  Status prepare_acl() {
    const std::lock_guard lock(parts_.mutex);
    if (Status status = require_ready(); !status.ok()) return status;
    if (acl_) return Status();
    acl_.emplace(parts_.device);
    if (acl_->ready()) return Status();
    const int code = acl_->code();
    acl_.reset();
    return parts_.device.failure("acl_init", code);
  }
  Status create_stream(driver::Stream** stream) {
    const std::lock_guard lock(parts_.mutex);
    if (Status status = require_ready(); !status.ok()) return status;
    OwnedStream made(parts_.device);
    if (Status status = parts_.device.run("stream_create", &Driver::stream_create, made.receive()); !status.ok()) {
      *made.receive() = nullptr;
      return status;
    }
    *stream = made.get();
    comm_streams_.emplace(made.get(), std::move(made));
    return Status();
  }
  Status destroy_stream(driver::Stream* stream) {
    const std::lock_guard lock(parts_.mutex);
    if (Status status = require_ready(); !status.ok()) return status;
    const auto found = comm_streams_.find(stream);
    if (found == comm_streams_.end())
      return fail(ErrorKind::kValue,
                  "create_comm_stream_ctx of this context did not return that stream, or it is gone");
    OwnedStream owned = std::move(found->second);
    comm_streams_.erase(found);
    if (const int code = owned.release(); code != driver::kOk) return parts_.device.failure("stream_destroy", code);
    return Status();
  }

  // ---- memory ----

  Status malloc(std::size_t bytes, std::uint64_t* address) {
    const std::lock_guard lock(parts_.mutex);
    if (Status status = require_ready(); !status.ok()) return status;
    if (bytes == 0) return fail(ErrorKind::kValue, "malloc of 0 bytes: ask for at least 1");
    if (Status status = parts_.allocator.allocate(bytes, address); !status.ok()) return status;
    user_memory_[*address] = bytes;
    return Status();
  }

  Status free(std::uint64_t address) {
    const std::lock_guard lock(parts_.mutex);
    if (Status status = require_ready(); !status.ok()) return status;
    const auto found = user_memory_.find(address);
    if (found == user_memory_.end()) {
      return fail(ErrorKind::kValue,
                  format("free of 0x%llx: malloc of this worker did not return that address, or it was freed already",
                         static_cast<unsigned long long>(address)));
    }
    if (Status status = parts_.allocator.free(address); !status.ok()) return status;
    user_memory_.erase(found);
    return Status();
  }

  Status copy_to(std::uint64_t destination, const void* source, std::size_t bytes) {
    if (Status status = locked_ready(); !status.ok()) return status;
    if (source == nullptr && bytes > 0)
      return fail(ErrorKind::kValue, format("copy_to of %zu bytes: the host address is null", bytes));
    if (in_shared_window(destination, bytes)) {
      std::memcpy(reinterpret_cast<void*>(destination), source, bytes);
      return Status();
    }
    return copied("copy_to", parts_.device.call(&Driver::copy_to_device, destination, source, bytes));
  }
  Status copy_from(void* destination, std::uint64_t source, std::size_t bytes) {
    if (Status status = locked_ready(); !status.ok()) return status;
    if (destination == nullptr && bytes > 0)
      return fail(ErrorKind::kValue, format("copy_from of %zu bytes: the host address is null", bytes));
    if (in_shared_window(source, bytes)) {
      std::memcpy(destination, reinterpret_cast<const void*>(source), bytes);
      return Status();
    }
    return copied("copy_from", parts_.device.call(&Driver::copy_from_device, destination, source, bytes));
  }
  std::size_t committed_memory() const { return parts_.allocator.bytes(); }

  // ---- callables ----

  Status register_callable(int slot, const void* blob, std::size_t bytes) {
    std::unique_lock<std::mutex> lock;
    if (Status status = lock_while_idle(&lock); !status.ok()) return status;
    if (Status status = check_slot(slot); !status.ok()) return status;
    if (parts_.registry.at(slot) != nullptr)
      return fail(ErrorKind::kState, format("callable slot %d is taken: unregister it first", slot));
    if (const abi::Verdict verdict = abi::check_chip_callable(blob, bytes); !verdict.ok()) {
      return fail(ErrorKind::kValue, format("not a valid ChipCallable: %s", verdict.text()));
    }
    std::shared_ptr<Callable> callable;
    bool uploaded = false;
    if (Status status = parts_.registry.load(blob, bytes, &callable, &uploaded); !status.ok()) return status;
    if (uploaded) parts_.streams.mark_stale();
    const abi::ChipCallable& header = callable->header();
    abi::RegisterCallableArgs args{};
    args.id = slot;
    args.code_address = callable->upload.address() + sizeof(abi::ChipCallable);
    args.code_bytes = header.binary_size;
    std::memcpy(args.function_name, header.func_name, sizeof args.function_name);
    std::memcpy(args.config_name, header.config_name, sizeof args.config_name);
    if (Status status = parts_.bringup.call(CpuEntry::kRegisterCallable, &args, sizeof args, "register_callable");
        !status.ok())
      return status;
    parts_.registry.set(slot, std::move(callable));
    ++loads_;
    return Status();
  }

  Status unregister_callable(int slot) {
    std::unique_lock<std::mutex> lock;
    if (Status status = lock_while_idle(&lock); !status.ok()) return status;
    if (Status status = check_slot(slot); !status.ok()) return status;
    if (parts_.registry.at(slot) == nullptr) return fail(ErrorKind::kKey, format("callable slot %d is empty", slot));
    if (runs_.uses_prepared(slot)) {
      return fail(ErrorKind::kState, format("a prepared run uses callable slot %d: launch or finalize it first", slot));
    }
    const std::int32_t id = slot;
    if (Status status = parts_.bringup.call(CpuEntry::kUnregisterCallable, &id, sizeof id, "unregister_callable");
        !status.ok())
      return status;
    parts_.registry.set(slot, nullptr);
    return Status();
  }

  // ---- runs ----

  Status prepare_run(const RunRequest& request, RunId* id) {
    const std::lock_guard lock(parts_.mutex);
    if (Status status = require_ready(); !status.ok()) return status;
    if (Status status = check_slot(request.callable_slot); !status.ok()) return status;
    return runs_.prepare(request, id);
  }
  Status launch_run(RunId id) {
    const std::lock_guard lock(parts_.mutex);
    if (Status status = require_ready(); !status.ok()) return status;
    return runs_.launch(id);
  }
  Status wait_run(RunId id, std::int64_t timeout_ns, bool* done) {
    if (Status status = require_open(); !status.ok()) return status;
    return runs_.wait(id, timeout_ns, done);
  }
  Status finalize_run(RunId id, RunTiming* timing) {
    if (Status status = require_open(); !status.ok()) return status;
    return runs_.finalize(id, timing);
  }

  // True if no run is left that executes; waits up to the limit for that.
  bool wait_idle(std::int64_t timeout_ns) {
    RunId id = 0;
    {
      const std::lock_guard lock(parts_.mutex);
      id = runs_.running();
    }
    bool done = true;
    if (id != 0) static_cast<void>(runs_.wait(id, timeout_ns, &done));  // its outcome is kept for who finalizes it
    return done;
  }

  // ---- facts ----

  int device_id() const { return parts_.options.device_id; }
  int cluster_count() const { return parts_.bringup.block_limit(); }
  int thread_count() const { return backend_->threads(); }
  bool host_memory() const { return backend_->simulated(); }
  // Orchestrations loaded where the runtime has them run: on the host, or on the device.
  std::uint64_t loads(bool on_host) const {
    return on_host == (parts_.options.runtime == frontend::kHostBuiltRuntime) ? loads_.load() : 0;
  }
  std::uint64_t core_streams_created() const {
    return parts_.options.platform == "a2a3" ? parts_.streams.created() : 0;
  }
  std::uint64_t heap_address(int bank) const {
    const std::lock_guard lock(parts_.mutex);
    return parts_.arenas.base(bank, Arenas::kHeap);
  }
  std::uint64_t staging_address(int slot) const {
    const std::lock_guard lock(parts_.mutex);
    return runs_.staging_address(slot);
  }

 private:
  Status require_open() const {
    if (parts_.device.state() != Device::State::kFinalized) return Status();
    return fail(ErrorKind::kState, "the device runner is finalized");
  }
  Status require_ready() {
    switch (parts_.device.state()) {
      case Device::State::kReady: return parts_.device.attach();
      case Device::State::kFinalized: return require_open();
      case Device::State::kFresh: return fail(ErrorKind::kState, "the device runner is not ready");
      case Device::State::kUnusable: break;
    }
    return fail(ErrorKind::kState, format("the device is quarantined: %s. Close this worker and make a new one",
                                          parts_.device.why_unusable().c_str()));
  }
  Status locked_ready() {
    const std::lock_guard lock(parts_.mutex);
    return require_ready();
  }
  // Windows of communication sessions are no allocation of the driver's.
  bool in_shared_window(std::uint64_t address, std::size_t bytes) const {
    return host_memory() && SharedWindows::hold(address, bytes);
  }
  Status copied(const char* what, int code) {
    if (code == driver::kOk) return Status();
    Status status = parts_.device.failure(what, code);
    return code == driver::kInvalidParameter ? fail(ErrorKind::kValue, status.message()) : status;
  }
  // The lock, at a moment when no run executes.
  Status lock_while_idle(std::unique_lock<std::mutex>* lock) {
    for (;;) {
      *lock = std::unique_lock(parts_.mutex);
      if (Status status = require_ready(); !status.ok()) return status;
      const RunId id = runs_.running();
      if (id == 0) return Status();
      lock->unlock();
      bool done = false;
      static_cast<void>(runs_.wait(id, -1, &done));
    }
  }

  // Ends what is between prepare and finalize; a run that does not end puts the device in doubt.
  void give_runs_back() {
    std::array<RunId, kSlots> ids;
    {
      const std::lock_guard lock(parts_.mutex);
      ids = runs_.outstanding();
    }
    std::sort(ids.begin(), ids.end());  // the oldest first
    for (const RunId id : ids) {
      if (id == 0) continue;
      bool done = true;
      static_cast<void>(runs_.wait(id, kFinalizeLimitNs, &done));  // a prepared one answers at once
      if (!done) give_up(parts_.device, "a run has not ended", parts_.options.recovery_limit_ms);
      static_cast<void>(runs_.finalize(id, nullptr));  // its failure belongs to whoever waits for it
    }
  }

  const pid_t owner_pid_ = getpid();
  std::unique_ptr<Backend> backend_;
  mutable RunnerParts parts_;
  Runs runs_;
  std::optional<AclGuard> acl_;                          // for libraries of communication
  std::map<driver::Stream*, OwnedStream> comm_streams_;  // likewise
  std::map<std::uint64_t, std::size_t> user_memory_;     // address -> bytes, of malloc
  std::atomic<std::uint64_t> loads_{0};                  // of orchestrations
};

// ---- the public face --------------------------------------------------------------------------------------------------

Status DeviceRunner::open(const RunnerOptions& options, std::unique_ptr<DeviceRunner>* runner) {
  if (options.device_id < 0)
    return fail(ErrorKind::kValue, format("device_id=%d is negative: ids start at 0", options.device_id));
  std::unique_ptr<Backend> backend;
  if (Status status = Backend::open(options, &backend); !status.ok()) return status;
  auto impl = std::make_unique<Impl>(options, std::move(backend));
  if (Status status = impl->open(); !status.ok()) return status;
  runner->reset(new DeviceRunner(std::move(impl)));
  return Status();
}

DeviceRunner::DeviceRunner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

DeviceRunner::~DeviceRunner() {
  // In a forked child the threads behind it do not exist: there is nothing to stop, and nothing may be waited for.
  if (impl_->inherited()) static_cast<void>(impl_.release());
}

Status DeviceRunner::inherited_error() {
  return fail(ErrorKind::kState,
              "this worker belongs to the parent process: its threads do not exist after a fork. Make a new one in "
              "the child");
}
Status DeviceRunner::finalize() { return impl_->inherited() ? Status() : impl_->finalize(); }
bool DeviceRunner::usable() const { return !impl_->inherited() && impl_->usable(); }
bool DeviceRunner::outstanding() const { return !impl_->inherited() && impl_->outstanding(); }
Status DeviceRunner::prewarm(const abi::CallConfig& config) {
  return impl_->inherited() ? inherited_error() : impl_->prewarm(config);
}
Status DeviceRunner::provision_dma(std::uint32_t engines) {
  return impl_->inherited() ? inherited_error() : impl_->provision_dma(engines);
}
Status DeviceRunner::release_dma() { return impl_->inherited() ? inherited_error() : impl_->release_dma(); }
std::uint32_t DeviceRunner::dma_engines() const { return impl_->dma_engines(); }
std::uint64_t DeviceRunner::dma_address(int engine) const { return impl_->dma_address(engine); }
Status DeviceRunner::prepare_acl() { return impl_->inherited() ? inherited_error() : impl_->prepare_acl(); }
Status DeviceRunner::create_stream(driver::Stream** stream) {
  return impl_->inherited() ? inherited_error() : impl_->create_stream(stream);
}
Status DeviceRunner::destroy_stream(driver::Stream* stream) {
  return impl_->inherited() ? inherited_error() : impl_->destroy_stream(stream);
}
Status DeviceRunner::malloc(std::size_t bytes, std::uint64_t* address) {
  return impl_->inherited() ? inherited_error() : impl_->malloc(bytes, address);
}
Status DeviceRunner::free(std::uint64_t address) {
  return impl_->inherited() ? inherited_error() : impl_->free(address);
}
Status DeviceRunner::copy_to(std::uint64_t destination, const void* source, std::size_t bytes) {
  return impl_->inherited() ? inherited_error() : impl_->copy_to(destination, source, bytes);
}
Status DeviceRunner::copy_from(void* destination, std::uint64_t source, std::size_t bytes) {
  return impl_->inherited() ? inherited_error() : impl_->copy_from(destination, source, bytes);
}
std::size_t DeviceRunner::committed_memory() const { return impl_->inherited() ? 0 : impl_->committed_memory(); }
bool DeviceRunner::wait_idle(std::int64_t timeout_ns) { return impl_->inherited() || impl_->wait_idle(timeout_ns); }
Status DeviceRunner::register_callable(int slot, const void* blob, std::size_t bytes) {
  return impl_->inherited() ? inherited_error() : impl_->register_callable(slot, blob, bytes);
}
Status DeviceRunner::unregister_callable(int slot) {
  return impl_->inherited() ? inherited_error() : impl_->unregister_callable(slot);
}
Status DeviceRunner::prepare_run(const RunRequest& request, RunId* run) {
  return impl_->inherited() ? inherited_error() : impl_->prepare_run(request, run);
}
Status DeviceRunner::prepare_run(int slot, const ChipStorageTaskArgs& args, const abi::CallConfig& config, RunId* run) {
  return prepare_run({.callable_slot = slot, .args = &args, .config = &config}, run);
}
Status DeviceRunner::launch_run(RunId run) { return impl_->inherited() ? inherited_error() : impl_->launch_run(run); }
Status DeviceRunner::poll_run(RunId run, bool* done) { return wait_run(run, 0, done); }
Status DeviceRunner::wait_run(RunId run, std::int64_t timeout_ns, bool* done) {
  return impl_->inherited() ? inherited_error() : impl_->wait_run(run, timeout_ns, done);
}
Status DeviceRunner::finalize_run(RunId run, RunTiming* timing) {
  return impl_->inherited() ? inherited_error() : impl_->finalize_run(run, timing);
}
int DeviceRunner::device_id() const { return impl_->device_id(); }
int DeviceRunner::cluster_count() const { return impl_->cluster_count(); }
int DeviceRunner::thread_count() const { return impl_->thread_count(); }
bool DeviceRunner::host_memory() const { return impl_->host_memory(); }
std::uint64_t DeviceRunner::device_orchestration_loads() const { return impl_->loads(false); }
std::uint64_t DeviceRunner::host_orchestration_loads() const { return impl_->loads(true); }
std::uint64_t DeviceRunner::core_streams_created() const { return impl_->core_streams_created(); }
std::uint64_t DeviceRunner::heap_address(int bank) const { return impl_->heap_address(bank); }
std::uint64_t DeviceRunner::staging_address(int slot) const { return impl_->staging_address(slot); }

}  // namespace simpler::host
