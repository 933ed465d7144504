#include "driver/soft/soft_devices.h"

#include "base/thread_serial.h"
#include "driver/codes.h"
#include "driver/soft/soft_errors.h"

namespace simpler::driver {

int SoftDevices::set(int ordinal) {
  if (ordinal < 0) return fail(kInvalidDevice, format("device %d: ids start at 0", ordinal));
  const std::lock_guard lock(mutex_);
  Device& device = devices_[ordinal];
  if (device.references++ == 0) ++device.generation;
  bindings_[thread_serial()] = {ordinal, device.generation};
  return kOk;
}

int SoftDevices::release(int ordinal, bool* last) {
  *last = false;
  const std::lock_guard lock(mutex_);
  const auto found = devices_.find(ordinal);
  if (found == devices_.end() || found->second.references == 0)
    return fail(kContextReleased, format("device %d is reset more often than it was set", ordinal));
  Device& device = found->second;
  if (--device.references > 0) return kOk;
  if (device.state == State::kAbandoned) return fail(kDriverInternal, device.why);
  unbind(ordinal);
  *last = true;
  return kOk;
}

void SoftDevices::release_all(int ordinal) {
  const std::lock_guard lock(mutex_);
  Device& device = devices_[ordinal];
  device.references = 0;
  device.state = State::kWorks;
  device.why.clear();
  unbind(ordinal);
}

int SoftDevices::check_held(int ordinal) const {
  const std::lock_guard lock(mutex_);
  const Device* device = find(ordinal);
  if (device == nullptr || device->references == 0)
    return fail(kContextReleased, format("device %d is not set", ordinal));
  return kOk;
}

int SoftDevices::context(int* ordinal) const {
  const std::lock_guard lock(mutex_);
  const auto found = bindings_.find(thread_serial());
  if (found == bindings_.end()) return fail(kNoContext, "this thread has not called set_device");
  const Device& device = *find(found->second.ordinal);
  *ordinal = found->second.ordinal;
  if (device.references == 0 || device.generation != found->second.generation)
    return fail(kNoContext, "the device was reset after this thread had set it");
  return device.state == State::kWorks ? kOk : fail(kDriverInternal, device.why);
}

int SoftDevices::check(int ordinal) const {
  const std::lock_guard lock(mutex_);
  const Device* device = find(ordinal);
  return device == nullptr || device->state == State::kWorks ? kOk : fail(kDriverInternal, device->why);
}

int SoftDevices::check_returns(int ordinal) const {
  const std::lock_guard lock(mutex_);
  const Device* device = find(ordinal);
  return device == nullptr || device->state != State::kAbandoned ? kOk : fail(kDriverInternal, device->why);
}

int SoftDevices::check_all_return() const {
  const std::lock_guard lock(mutex_);
  for (const auto& [ordinal, device] : devices_) {
    if (device.state == State::kAbandoned) return fail(kDriverInternal, device.why);
  }
  return kOk;
}

void SoftDevices::put_in_error(int ordinal, std::string why) { worsen(ordinal, State::kInError, std::move(why)); }
void SoftDevices::abandon(int ordinal, std::string why) { worsen(ordinal, State::kAbandoned, std::move(why)); }

int SoftDevices::generation(int ordinal) const {
  const std::lock_guard lock(mutex_);
  const Device* device = find(ordinal);
  return device == nullptr ? -1 : static_cast<int>(device->generation);
}

const SoftDevices::Device* SoftDevices::find(int ordinal) const {
  const auto found = devices_.find(ordinal);
  return found == devices_.end() ? nullptr : &found->second;
}

void SoftDevices::worsen(int ordinal, State state, std::string why) {
  const std::lock_guard lock(mutex_);
  Device& device = devices_[ordinal];
  if (device.state == State::kWorks) device.why = std::move(why);
  if (state > device.state) device.state = state;
}

void SoftDevices::unbind(int ordinal) {
  std::erase_if(bindings_, [&](const auto& binding) { return binding.second.ordinal == ordinal; });
}

}  // namespace simpler::driver
