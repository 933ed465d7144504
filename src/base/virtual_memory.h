// VirtualMemory: a range of zeroed address space that costs memory only where it is touched.
//
// Lifetime  Owns its mapping; movable. Pages are given back when it is destroyed or by discard().
// Errors    reserve() answers false and leaves the object empty when the system refuses.
// C++17, POSIX.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <utility>

namespace simpler {

class VirtualMemory {
 public:
  VirtualMemory() = default;
  ~VirtualMemory() { release(); }
  VirtualMemory(VirtualMemory&& other) noexcept { swap(other); }
  VirtualMemory& operator=(VirtualMemory&& other) noexcept {
    swap(other);
    return *this;
  }

  bool reserve(std::size_t bytes) {
    release();
    if (bytes == 0) return true;
    void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return false;
    base_ = base;
    bytes_ = bytes;
    return true;
  }
  void release() {
    if (base_ != nullptr) munmap(base_, bytes_);
    base_ = nullptr;
    bytes_ = 0;
  }
  // The range reads as zero again and its memory goes back to the system.
  void discard() {
    if (base_ != nullptr) madvise(base_, bytes_, MADV_DONTNEED);
  }
  std::size_t bytes() const { return bytes_; }
  template <typename T> T* as() const { return static_cast<T*>(base_); }

 private:
  void swap(VirtualMemory& other) {
    std::swap(base_, other.base_);
    std::swap(bytes_, other.bytes_);
  }
  void* base_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace simpler
