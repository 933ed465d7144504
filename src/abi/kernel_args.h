// KernelArgs: what a launch hands to a device's programs. Control processors get a private copy with the launch, cores the
// address of one in device memory.
//
// Layout    Little endian, fixed by the chip's programs, asserted below. A chip differs only in where a field stands, so the
//           host writes by a row of offsets (KernelArgsLayout) and reads nothing. runtime_args and regs are first everywhere.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace simpler::abi {

struct KernelArgsA2A3 {
  std::uint64_t runtime_args;                                   // device address of the run's image
  std::uint64_t regs;                                           // of the table of register windows
  std::uint64_t ffts_base;                                      // of the window for synchronising cores
  std::uint64_t dump, swimlane, pmu, pmu_regs, dep_gen, scope;  // of collectors' memory; 0: off
  std::uint64_t rotation_table;
  std::uint64_t device_wall;  // of the buffer for phase times; 0: off
  std::uint32_t profiling_flag;
  std::uint32_t pad;
};
static_assert(sizeof(KernelArgsA2A3) == 96 && offsetof(KernelArgsA2A3, device_wall) == 80);

struct KernelArgsA5 {
  std::uint64_t runtime_args, regs;
  std::uint64_t dump, swimlane, pmu, dep_gen;
  std::uint64_t rotation_table, pmu_rings;
  std::uint64_t scope;
  std::uint64_t device_wall;
  std::uint32_t profiling_flag;
  std::uint32_t force_simt_anchor;  // last, and 0
};
static_assert(sizeof(KernelArgsA5) == 88 && offsetof(KernelArgsA5, force_simt_anchor) == 84);
static_assert(offsetof(KernelArgsA2A3, runtime_args) == 0 && offsetof(KernelArgsA5, runtime_args) == 0);
static_assert(offsetof(KernelArgsA2A3, regs) == 8 && offsetof(KernelArgsA5, regs) == 8);

// Where a chip has a field; kAbsent: it has none.
struct KernelArgsLayout {
  static constexpr std::uint32_t kAbsent = ~0u;
  std::uint32_t bytes;
  std::uint32_t ffts_base, device_wall, profiling_flag;
};
inline constexpr KernelArgsLayout kKernelArgsA2A3{sizeof(KernelArgsA2A3), offsetof(KernelArgsA2A3, ffts_base),
                                                  offsetof(KernelArgsA2A3, device_wall),
                                                  offsetof(KernelArgsA2A3, profiling_flag)};
inline constexpr KernelArgsLayout kKernelArgsA5{sizeof(KernelArgsA5), KernelArgsLayout::kAbsent,
                                                offsetof(KernelArgsA5, device_wall),
                                                offsetof(KernelArgsA5, profiling_flag)};

// The bytes of one KernelArgs of either chip.
class KernelArgs {
 public:
  static constexpr std::size_t kMaxBytes = sizeof(KernelArgsA2A3);

  explicit KernelArgs(const KernelArgsLayout& layout) : layout_(&layout) {}
  void set_runtime_args(std::uint64_t address) { put(0, address); }
  void set_registers(std::uint64_t address) { put(offsetof(KernelArgsA2A3, regs), address); }
  void set_ffts_base(std::uint64_t address) { put(layout_->ffts_base, address); }
  void set_device_wall(std::uint64_t address) { put(layout_->device_wall, address); }
  void set_profiling_flag(std::uint32_t flag) { put(layout_->profiling_flag, flag); }
  const void* data() const { return bytes_; }
  std::size_t bytes() const { return layout_->bytes; }

 private:
  template <typename T> void put(std::uint32_t offset, T value) {
    if (offset != KernelArgsLayout::kAbsent) std::memcpy(bytes_ + offset, &value, sizeof value);
  }
  const KernelArgsLayout* layout_;
  alignas(8) unsigned char bytes_[kMaxBytes] = {};
};

}  // namespace simpler::abi
