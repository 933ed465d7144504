// CoreCallable and ChipCallable: compiled code as one block of bytes.
//
// What      A CoreCallable is one kernel: signature and code. A ChipCallable is one orchestration with all its kernels:
//           a header, the orchestration's shared object at storage offset 0, then each child as a CoreCallable at the
//           next multiple of 64. Both are hashed and uploaded as they are, so unused bytes are zero.
// Layout    Little endian, natural alignment, asserted below. Offsets of children are relative to the storage.
// Trust     Accessors do not check. Bytes from outside go through check_chip_callable() first.
// Lifetime  Headers of a block: never copied by value, valid as long as the block.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "abi/verdict.h"

namespace simpler::abi {

constexpr int kCoreMaxTensors = 32;
constexpr int kCoreMaxScalars = 16;
constexpr int kChipMaxTensors = 256;
constexpr int kChipMaxScalars = 128;
constexpr int kChipMaxChildren = 1024;
constexpr int kCallableNameBytes = 64;          // with the terminating zero
constexpr std::size_t kCallableAlignment = 64;  // of code inside a CoreCallable and of children inside the storage
constexpr std::size_t kCoreCodeOffset = 192;    // CoreCallable header rounded up to kCallableAlignment

// Direction of one entry of a callable's signature.
enum class Direction : std::int32_t { kScalar = 0, kIn = 1, kOut = 2, kInOut = 3 };

struct CoreCallable {
  std::int32_t signature[kCoreMaxTensors];  // Direction; entry i describes tensor i of the kernel
  std::int32_t sig_count;
  std::uint32_t binary_size;    // bytes of code at kCoreCodeOffset
  std::uint64_t resolved_addr;  // 0 in files; the runtime's copy holds the address to run

  const std::uint8_t* code() const { return reinterpret_cast<const std::uint8_t*>(this) + kCoreCodeOffset; }
  std::uint64_t total_bytes() const { return kCoreCodeOffset + std::uint64_t{binary_size}; }
};
static_assert(std::is_trivially_copyable_v<CoreCallable> && std::is_standard_layout_v<CoreCallable>);
static_assert(sizeof(CoreCallable) == 144 && sizeof(CoreCallable) <= kCoreCodeOffset);
static_assert(offsetof(CoreCallable, signature) == 0);
static_assert(offsetof(CoreCallable, sig_count) == 128);
static_assert(offsetof(CoreCallable, binary_size) == 132);
static_assert(offsetof(CoreCallable, resolved_addr) == 136);

struct alignas(16) ChipCallable {
  std::int32_t signature[kChipMaxTensors];  // Direction; entry i describes entry tensor i
  std::int32_t sig_count;
  std::uint32_t binary_size;  // bytes of the orchestration at storage offset 0
  char func_name[kCallableNameBytes];
  std::uint32_t func_name_len;
  std::int32_t child_func_ids[kChipMaxChildren];
  std::uint32_t child_offsets[kChipMaxChildren];  // from the storage, multiples of kCallableAlignment
  std::int32_t child_count;
  char config_name[kCallableNameBytes];  // "" when the orchestration exports no configuration
  std::uint32_t config_name_len;

  const std::uint8_t* storage() const { return reinterpret_cast<const std::uint8_t*>(this) + sizeof(ChipCallable); }
  const std::uint8_t* binary() const { return storage(); }
  const CoreCallable* child(int i) const { return reinterpret_cast<const CoreCallable*>(storage() + child_offsets[i]); }
  // The last child ends the block; without children the orchestration does.
  std::uint64_t total_bytes() const {
    std::uint64_t end = binary_size;
    for (int i = 0; i < child_count; ++i) {
      const std::uint64_t child_end = child_offsets[i] + child(i)->total_bytes();
      if (child_end > end) end = child_end;
    }
    return sizeof(ChipCallable) + end;
  }
};
static_assert(std::is_trivially_copyable_v<ChipCallable> && std::is_standard_layout_v<ChipCallable>);
static_assert(sizeof(ChipCallable) == 9376 && alignof(ChipCallable) == 16);
static_assert(offsetof(ChipCallable, signature) == 0);
static_assert(offsetof(ChipCallable, sig_count) == 1024);
static_assert(offsetof(ChipCallable, binary_size) == 1028);
static_assert(offsetof(ChipCallable, func_name) == 1032);
static_assert(offsetof(ChipCallable, func_name_len) == 1096);
static_assert(offsetof(ChipCallable, child_func_ids) == 1100);
static_assert(offsetof(ChipCallable, child_offsets) == 5196);
static_assert(offsetof(ChipCallable, child_count) == 9292);
static_assert(offsetof(ChipCallable, config_name) == 9296);
static_assert(offsetof(ChipCallable, config_name_len) == 9360);

// Reads `bytes` bytes of unknown origin; looks at nothing beyond them. `blob` must be 8-byte aligned. A valid block may
// be used through ChipCallable: counts, directions, names and every child lie inside it.
Verdict check_chip_callable(const void* blob, std::size_t bytes);

// The same for one kernel.
Verdict check_core_callable(const void* blob, std::size_t bytes);

}  // namespace simpler::abi
