// AclGuard: the vendor's set-up of the process, which is taken back only by who made it.
#pragma once
#include "host/device.h"

namespace simpler::host {

class AclGuard {
 public:
  explicit AclGuard(Device& device) : device_(device), code_(device.call(&driver::Driver::acl_init)) {}
  ~AclGuard() {
    if (code_ == driver::kOk) static_cast<void>(device_.call(&driver::Driver::acl_finalize));
  }
  AclGuard(const AclGuard&) = delete;
  AclGuard& operator=(const AclGuard&) = delete;

  bool ready() const { return code_ == driver::kOk || code_ == driver::kRepeatInitialize; }
  int code() const { return code_; }

 private:
  Device& device_;
  const int code_;
};

}  // namespace simpler::host
