// DeviceBlock: a piece of device memory that frees itself.
#pragma once
#include <cstdint>
#include <utility>

#include "base/status.h"
#include "driver/driver.h"

namespace simpler::host {

class DeviceBlock {
 public:
  DeviceBlock() = default;
  ~DeviceBlock() { release(); }
  DeviceBlock(DeviceBlock&& other) noexcept { swap(other); }
  DeviceBlock& operator=(DeviceBlock&& other) noexcept {
    swap(other);
    return *this;
  }

  // Makes it at least `bytes` large; contents are lost if it grows. On failure it is empty.
  Status grow(const driver::Driver& driver, std::size_t bytes) {
    if (bytes <= bytes_) return Status();
    release();
    if (const int code = driver.alloc(driver.self, bytes, &address_); code != driver::kOk) {
      return fail(ErrorKind::kMemory, format("device memory: %s (code %d)", driver.recent_error(driver.self), code));
    }
    driver_ = &driver;
    bytes_ = bytes;
    return Status();
  }
  void release() {
    if (bytes_ > 0) driver_->free(driver_->self, address_);
    address_ = 0;
    bytes_ = 0;
  }
  std::uint64_t address() const { return address_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void swap(DeviceBlock& other) {
    std::swap(driver_, other.driver_);
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
  }
  const driver::Driver* driver_ = nullptr;
  std::uint64_t address_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace simpler::host
