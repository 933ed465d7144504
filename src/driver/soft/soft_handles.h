// HandleTable: objects of the software device by handle.
//
// What      Handles are numbers that are never given out twice, so a stale one is found out instead of followed. Each
//           belongs to a device.
// Errors    Functions that return a code leave its text in last_error().
// Threads   Any. Objects live on in whoever holds their shared_ptr; none is destroyed under the table's lock.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "driver/codes.h"
#include "driver/soft/soft_devices.h"
#include "driver/soft/soft_errors.h"

namespace simpler::driver {

template <class Object, class Handle> class HandleTable {
 public:
  // what: an object, for messages; a literal.
  HandleTable(SoftDevices& devices, const char* what) : devices_(devices), what_(what) {}

  // Of the device that the calling thread acts on.
  int add(std::shared_ptr<Object> object, Handle** handle) {
    int ordinal = 0;
    if (const int code = devices_.context(&ordinal); code != kOk) return code;
    *handle = add_of(ordinal, std::move(object));
    return kOk;
  }
  Handle* add_of(int ordinal, std::shared_ptr<Object> object) {
    const std::lock_guard lock(mutex_);
    entries_.emplace(++last_, Entry{ordinal, std::move(object)});
    return reinterpret_cast<Handle*>(last_);
  }
  // kInvalidHandle for a handle that names nothing (any more). *ordinal: whose it is.
  int find(const Handle* handle, std::shared_ptr<Object>* object, int* ordinal) const {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(key_of(handle));
    if (found == entries_.end()) return stale();
    *ordinal = found->second.ordinal;
    *object = found->second.object;
    return kOk;
  }
  // Forgets the handle; what it named. What an abandoned device may still use stays.
  int take(const Handle* handle, std::shared_ptr<Object>* object) {
    int ordinal = 0;
    if (const int code = find(handle, object, &ordinal); code != kOk) return code;
    if (const int code = devices_.check_returns(ordinal); code != kOk) {
      object->reset();
      return code;
    }
    const std::lock_guard lock(mutex_);
    return entries_.erase(key_of(handle)) != 0 ? kOk : stale();
  }

  std::vector<std::shared_ptr<Object>> all(int ordinal) const {
    const std::lock_guard lock(mutex_);
    return objects([&](const Entry& entry) { return entry.ordinal == ordinal; });
  }
  std::vector<std::shared_ptr<Object>> all() const {
    const std::lock_guard lock(mutex_);
    return objects([](const Entry&) { return true; });
  }
  // Forgets those of the device's handles whose objects satisfy `wanted`; what they named.
  template <class Wanted> std::vector<std::shared_ptr<Object>> take_if(int ordinal, Wanted wanted) {
    const auto of_device = [&](const Entry& entry) { return entry.ordinal == ordinal && wanted(*entry.object); };
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<Object>> taken = objects(of_device);
    std::erase_if(entries_, [&](const auto& entry) { return of_device(entry.second); });
    return taken;
  }
  std::vector<std::shared_ptr<Object>> take_all(int ordinal) {
    return take_if(ordinal, [](const Object&) { return true; });
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return entries_.size();
  }

 private:
  struct Entry {
    int ordinal;
    std::shared_ptr<Object> object;
  };

  static std::uintptr_t key_of(const Handle* handle) { return reinterpret_cast<std::uintptr_t>(handle); }
  int stale() const {
    return fail(kInvalidHandle, format("the handle names no live %s: destroyed, or its device was reset", what_));
  }
  template <class Wanted> std::vector<std::shared_ptr<Object>> objects(Wanted wanted) const {  // under the lock
    std::vector<std::shared_ptr<Object>> found;
    for (const auto& [handle, entry] : entries_) {
      if (wanted(entry)) found.push_back(entry.object);
    }
    return found;
  }

  SoftDevices& devices_;
  const char* const what_;
  mutable std::mutex mutex_;
  std::unordered_map<std::uintptr_t, Entry> entries_;
  std::uintptr_t last_ = 0xFFF;
};

}  // namespace simpler::driver
