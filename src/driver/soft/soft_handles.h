// HandleTable: objects of the software device by handle.
//
// What      Handles are numbers that are never given out twice, so a stale one is found out instead of followed.
// Threads   The driver's lock serialises calls; objects live on in whoever holds their shared_ptr.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace simpler::driver {

template <class Object, class Handle> class HandleTable {
 public:
  Handle* add(int device, std::shared_ptr<Object> object) {
    entries_.emplace(++last_, Entry{device, std::move(object)});
    return reinterpret_cast<Handle*>(last_);
  }
  // nullptr for a handle that names nothing (any more). *device: whose it is.
  std::shared_ptr<Object> find(const Handle* handle, int* device) const {
    const auto found = entries_.find(reinterpret_cast<std::uintptr_t>(handle));
    if (found == entries_.end()) return nullptr;
    *device = found->second.device;
    return found->second.object;
  }
  void erase(const Handle* handle) { entries_.erase(reinterpret_cast<std::uintptr_t>(handle)); }
  std::vector<std::shared_ptr<Object>> all(int device) const {
    std::vector<std::shared_ptr<Object>> found;
    for (const auto& [handle, entry] : entries_) {
      if (entry.device == device) found.push_back(entry.object);
    }
    return found;
  }
  // Forgets the device's handles; what they named.
  std::vector<std::shared_ptr<Object>> take_all(int device) {
    std::vector<std::shared_ptr<Object>> taken = all(device);
    std::erase_if(entries_, [&](const auto& entry) { return entry.second.device == device; });
    return taken;
  }
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    int device;
    std::shared_ptr<Object> object;
  };
  std::unordered_map<std::uintptr_t, Entry> entries_;
  std::uintptr_t last_ = 0xFFF;
};

}  // namespace simpler::driver
