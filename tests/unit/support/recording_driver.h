// RecordingDriver: the software device's table with every call on record, and one call that fails on request.
//
// What      Forwards memory and code calls to a SoftDriver. `fail_call` names the call (1, 2, ...) that answers
//           kOutOfMemory instead; failed() tells whether it came to that. Frees and releases never fail.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "driver/soft/soft_driver.h"

namespace simpler::test {

class RecordingDriver {
 public:
  explicit RecordingDriver(int fail_call = 0) : soft_({1, 1}), fail_call_(fail_call), table_(soft_.table()) {
    soft_.table().set_device(soft_.table().self, 0);
    table_.self = this;
    table_.alloc = [](void* self, std::size_t bytes, std::uint64_t* address) {
      return of(self).fails("alloc") ? driver::kOutOfMemory : inner(self).alloc(inner(self).self, bytes, address);
    };
    table_.free = [](void* self, std::uint64_t address) { return inner(self).free(inner(self).self, address); };
    table_.copy_to_device = [](void* self, std::uint64_t to, const void* from, std::size_t bytes) {
      return of(self).fails("upload") ? driver::kOutOfMemory
                                      : inner(self).copy_to_device(inner(self).self, to, from, bytes);
    };
    table_.copy_from_device = [](void* self, void* to, std::uint64_t from, std::size_t bytes) {
      return of(self).fails("download") ? driver::kOutOfMemory
                                        : inner(self).copy_from_device(inner(self).self, to, from, bytes);
    };
    table_.child_code_resolve = [](void* self, std::uint64_t address, std::size_t bytes, const char* label,
                                   std::uint64_t* entry, driver::ChildCode** code) {
      if (of(self).fails("resolve")) return driver::kOutOfMemory;
      const int result = inner(self).child_code_resolve(inner(self).self, address, bytes, label, entry, code);
      of(self).codes_ += result == driver::kOk;
      return result;
    };
    table_.child_code_release = [](void* self, driver::ChildCode* code) {
      --of(self).codes_;
      return inner(self).child_code_release(inner(self).self, code);
    };
    table_.recent_error = [](void*) { return "refused on request"; };
  }

  const driver::Driver& table() const { return table_; }
  bool failed() const { return failed_; }
  // Calls of that name so far.
  int calls(const std::string& name) const {
    int count = 0;
    for (const std::string& call : calls_) count += call == name;
    return count;
  }
  std::size_t live_allocations() const { return soft_.census().allocations; }
  int live_codes() const { return codes_; }

 private:
  static RecordingDriver& of(void* self) { return *static_cast<RecordingDriver*>(self); }
  static const driver::Driver& inner(void* self) { return of(self).soft_.table(); }
  bool fails(const char* name) {
    calls_.emplace_back(name);
    const bool now = static_cast<int>(calls_.size()) == fail_call_;
    failed_ = failed_ || now;
    return now;
  }

  driver::SoftDriver soft_;
  const int fail_call_;
  driver::Driver table_;
  std::vector<std::string> calls_;
  bool failed_ = false;
  int codes_ = 0;
};

}  // namespace simpler::test
