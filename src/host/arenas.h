// Memory that runs share or keep: pooled arenas in banks, the prebuilt image for them, buffers of graph definitions.
//
// Arenas    Three regions per bank: output heap, shared memory, runtime arena. setup() makes each at least as large as
//           asked; a region that is large enough stays where it is, whatever happens to its siblings. If one cannot be had,
//           the whole bank is given up. Size 0 gives a region back.
// Prebuilt  One image, valid for bank 0 as it is: any change of that bank forgets it. Found by hash and by exact key.
// Graphs    One buffer per slot and key, zeroed when made, kept while it is large enough and aligned.
// Threads   The runner serialises calls.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "host/device_memory.h"

namespace simpler::host {

inline constexpr int kBanks = 2;
inline constexpr int kSlots = 2;  // runs between prepare and finalize

class PrebuiltImage {
 public:
  struct View {
    std::array<std::uint64_t, 3> bases{};
    std::uint64_t runtime_offset = 0;
    std::string_view image;  // valid until the next mark or clear
  };
  bool lookup(int bank, std::uint64_t hash, std::string_view key, View* view) const;
  void mark(int bank, std::uint64_t hash, std::string_view key, const View& view);
  void clear() { valid_ = false; }

 private:
  bool valid_ = false;
  std::uint64_t hash_ = 0;
  std::string key_, image_;
  View view_;
};

class Arenas {
 public:
  static constexpr std::size_t kAlignment = 1024;
  enum Region { kHeap, kShared, kRuntime };
  using Sizes = std::array<std::size_t, 3>;  // by Region

  explicit Arenas(Allocator& allocator) : allocator_(allocator) {}
  Status setup(int bank, const Sizes& sizes);
  bool fits(int bank, const Sizes& sizes) const;      // setup would change nothing
  std::uint64_t base(int bank, Region region) const;  // 0: no such bank, or not set up
  std::size_t bytes(int bank, Region region) const;
  void release();
  PrebuiltImage& prebuilt() { return prebuilt_; }

 private:
  Allocator& allocator_;
  std::array<std::array<DeviceBlock, 3>, kBanks> banks_;
  PrebuiltImage prebuilt_;
};

class GraphBuffers {
 public:
  explicit GraphBuffers(Allocator& allocator) : allocator_(allocator) {}
  // 0: slot, bytes or alignment are not possible, or there is no memory; then the old buffer is still there.
  std::uint64_t acquire(int slot, std::uint64_t key, std::size_t bytes, std::size_t alignment);
  void release();

 private:
  Allocator& allocator_;
  std::array<std::map<std::uint64_t, DeviceBlock>, kSlots> buffers_;
};

}  // namespace simpler::host
