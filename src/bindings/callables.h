// Blobs of compiled code as Python objects.
//
// What      Each owns one zero-initialised, 64-byte aligned block laid out by abi/chip_callable.h. Immutable.
// Threads   Readable from any thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "abi/chip_callable.h"

namespace simpler::bindings {

class Block {
 public:
  explicit Block(std::size_t bytes) : bytes_(bytes), data_(static_cast<std::uint8_t*>(::operator new(bytes, kAlign))) {
    std::memset(data_.get(), 0, bytes);
  }
  std::uint8_t* data() { return data_.get(); }
  const std::uint8_t* data() const { return data_.get(); }
  std::size_t size() const { return bytes_; }

 private:
  static constexpr std::align_val_t kAlign{abi::kCallableAlignment};
  struct Delete {
    void operator()(std::uint8_t* p) const { ::operator delete(p, kAlign); }
  };
  std::size_t bytes_;
  std::unique_ptr<std::uint8_t, Delete> data_;
};

struct CoreCallableBlob {
  Block block;
  const abi::CoreCallable& header() const { return *reinterpret_cast<const abi::CoreCallable*>(block.data()); }
};

struct ChipCallableBlob {
  Block block;
  const abi::ChipCallable& header() const { return *reinterpret_cast<const abi::ChipCallable*>(block.data()); }
};

}  // namespace simpler::bindings
