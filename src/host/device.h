// Device: one device as its runner sees it: state, attachment of threads, calls and their failures.
//
// States    Fresh -> Ready -> {Unusable, Finalized}; Unusable -> Finalized. Checked by one function, become().
//           Unusable: the device is in doubt. From then on nothing is asked of it but what recovery does; who owns
//           something on it forgets it (owns() is false).
// Poison    A failure that only a device in trouble has (is_poison) makes it Unusable wherever it shows.
// Threads   Any. attach() binds the calling thread, once; others must do so before calls that need a current device.
// Lifetime  The table is borrowed.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "base/status.h"
#include "driver/driver.h"

namespace simpler::host {

class Device {
 public:
  enum class State { kFresh, kReady, kUnusable, kFinalized };

  Device(const driver::Driver& driver, int ordinal);

  int ordinal() const { return ordinal_; }
  const driver::Driver& driver() const { return driver_; }
  State state() const { return state_.load(); }
  void become(State to);
  // For whatever found the device in doubt; from any state but Finalized, and more than once.
  void mark_unusable(const std::string& why);
  std::string why_unusable() const;
  // Whether what was made on the device is still to be given back; otherwise it is forgotten.
  bool owns() const { return state() == State::kFresh || state() == State::kReady; }

  // Makes the device the calling thread's. Cheap if it is already.
  Status attach();
  // Gives back all references that attach() took; the first failure.
  int detach_all();

  // One call of the table.
  template <class... Args, class... Given>
  int call(int (*driver::Driver::*entry)(void*, Args...), Given... args) const {
    return (driver_.*entry)(driver_.self, static_cast<Args>(args)...);
  }
  // The same, its failure as a Status that says "<what> failed: <code>", logged.
  template <class... Args, class... Given>
  Status run(const char* what, int (*driver::Driver::*entry)(void*, Args...), Given... args) {
    const int code = call(entry, args...);
    return code == driver::kOk ? Status() : failure(what, code);
  }
  Status failure(const char* what, int code);

  // Codes after which nothing that the device does can be trusted.
  static bool is_poison(int code);

 private:
  const driver::Driver& driver_;
  const int ordinal_;
  const std::uint64_t serial_;
  std::atomic<State> state_{State::kFresh};
  std::atomic<int> references_{0};
  mutable std::mutex mutex_;
  std::string why_;
};

// A handle of the table that is given back through `Release`, or forgotten, as the device's state wants.
template <class Handle, int (*driver::Driver::*Release)(void*, Handle*)> class Owned {
 public:
  Owned() = default;
  explicit Owned(Device& device) : device_(&device) {}
  ~Owned() { static_cast<void>(release()); }
  Owned(Owned&& other) noexcept { swap(other); }
  Owned& operator=(Owned&& other) noexcept {
    swap(other);
    return *this;
  }

  Handle* get() const { return handle_; }
  explicit operator bool() const { return handle_ != nullptr; }
  // Where a creating call puts the handle; empty before.
  Handle** receive() { return &handle_; }
  // The driver's code. After a failure too there is nothing left to give back.
  int release() {
    Handle* const handle = std::exchange(handle_, nullptr);
    if (handle == nullptr || !device_->owns()) return driver::kOk;
    const int code = device_->call(Release, handle);
    if (code != driver::kOk) static_cast<void>(device_->failure("release", code));
    return code;
  }

 private:
  void swap(Owned& other) {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
  }
  Device* device_ = nullptr;
  Handle* handle_ = nullptr;
};

using OwnedStream = Owned<driver::Stream, &driver::Driver::stream_destroy>;
using OwnedEvent = Owned<driver::Event, &driver::Driver::event_destroy>;
using OwnedCode = Owned<driver::ChildCode, &driver::Driver::child_code_release>;
using OwnedModule = Owned<driver::CpuModule, &driver::Driver::cpu_unload>;
using OwnedWorkspaces = Owned<driver::DmaWorkspaces, &driver::Driver::dma_release>;

}  // namespace simpler::host
