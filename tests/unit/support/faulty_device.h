// FaultyDevice: the software device behind the fault decorator, attached, for tests of what the runner is made of.
#pragma once
#include <string>

#include "driver/fault/fault_driver.h"
#include "driver/soft/soft_driver.h"
#include "host/device_memory.h"

namespace simpler::test {

struct FaultyDevice {
  explicit FaultyDevice(driver::SoftOptions options = {}) : soft({1, 1}, options) {
    static_cast<void>(device.attach());
    device.become(host::Device::State::kReady);
    fault.clear_log();
  }

  // Lets the nth call from now on fail, of those with that name.
  void fail_call(std::uint64_t nth, const std::string& name = "", driver::Fault kind = driver::Fault::kBefore) {
    fault.clear_log();
    fault.set_rules({{.fault = kind, .call = name, .nth = nth, .code = driver::kOutOfMemory}});
  }
  bool failed() const { return fault.injected() > 0; }
  int calls(const std::string& name) const { return static_cast<int>(fault.calls(name)); }
  std::size_t live_allocations() const { return soft.census().allocations; }
  std::size_t live_codes() const { return soft.census().child_codes; }

  driver::SoftDriver soft;
  driver::FaultDriver fault{soft.table()};
  host::Device device{fault.table(), 0};
  host::Allocator allocator{device};
};

}  // namespace simpler::test
