#include "abi/chip_callable.h"

#include <cstring>

namespace simpler::abi {
namespace {

Verdict check_signature(const char* what, const std::int32_t* signature, std::int32_t count, int max) {
  if (count < 0 || count > max) {
    return Verdict::invalid("%s: signature count is %d; allowed: 0 to %d", what, count, max);
  }
  for (int i = 0; i < count; ++i) {
    if (signature[i] < 0 || signature[i] > static_cast<std::int32_t>(Direction::kInOut)) {
      return Verdict::invalid("%s: signature[%d] is %d; allowed: 0 SCALAR, 1 IN, 2 OUT, 3 INOUT", what, i,
                              signature[i]);
    }
  }
  return Verdict::valid();
}

// A name is stored with its length and a zero behind it.
Verdict check_name(const char* field, const char* name, std::uint32_t length) {
  if (length >= static_cast<std::uint32_t>(kCallableNameBytes)) {
    return Verdict::invalid("%s: length is %u; allowed: 0 to %d bytes", field, length, kCallableNameBytes - 1);
  }
  if (strnlen(name, kCallableNameBytes) != length) {
    return Verdict::invalid("%s: stored length %u does not match its text", field, length);
  }
  return Verdict::valid();
}

}  // namespace

Verdict check_core_callable(const void* blob, std::size_t bytes) {
  if (blob == nullptr || bytes < kCoreCodeOffset) {
    return Verdict::invalid("CoreCallable: %zu bytes; a header alone needs %zu", bytes, kCoreCodeOffset);
  }
  if (reinterpret_cast<std::uintptr_t>(blob) % alignof(CoreCallable) != 0) {
    return Verdict::invalid("CoreCallable: the block is not %zu-byte aligned", alignof(CoreCallable));
  }
  const auto* core = static_cast<const CoreCallable*>(blob);
  if (Verdict v = check_signature("CoreCallable", core->signature, core->sig_count, kCoreMaxTensors); !v.ok()) return v;
  if (core->total_bytes() > bytes) {
    return Verdict::invalid("CoreCallable: binary_size is %u but only %zu bytes follow the header", core->binary_size,
                            bytes - kCoreCodeOffset);
  }
  return Verdict::valid();
}

Verdict check_chip_callable(const void* blob, std::size_t bytes) {
  if (blob == nullptr || bytes < sizeof(ChipCallable)) {
    return Verdict::invalid("ChipCallable: %zu bytes; a header alone needs %zu", bytes, sizeof(ChipCallable));
  }
  if (reinterpret_cast<std::uintptr_t>(blob) % alignof(CoreCallable) != 0) {
    return Verdict::invalid("ChipCallable: the block is not %zu-byte aligned", alignof(CoreCallable));
  }
  const auto* chip = static_cast<const ChipCallable*>(blob);
  const std::size_t storage = bytes - sizeof(ChipCallable);
  if (Verdict v = check_signature("ChipCallable", chip->signature, chip->sig_count, kChipMaxTensors); !v.ok()) return v;
  if (Verdict v = check_name("func_name", chip->func_name, chip->func_name_len); !v.ok()) return v;
  if (Verdict v = check_name("config_name", chip->config_name, chip->config_name_len); !v.ok()) return v;
  if (chip->binary_size > storage) {
    return Verdict::invalid("ChipCallable: binary_size is %u but only %zu bytes follow the header", chip->binary_size,
                            storage);
  }
  if (chip->child_count < 0 || chip->child_count > kChipMaxChildren) {
    return Verdict::invalid("ChipCallable: child count is %d; allowed: 0 to %d", chip->child_count, kChipMaxChildren);
  }
  std::uint64_t seen[kChipMaxChildren / 64] = {};
  for (int i = 0; i < chip->child_count; ++i) {
    const std::int32_t func_id = chip->child_func_ids[i];
    const std::uint32_t offset = chip->child_offsets[i];
    if (func_id < 0 || func_id >= kChipMaxChildren) {
      return Verdict::invalid("child %d: func_id is %d; allowed: 0 to %d", i, func_id, kChipMaxChildren - 1);
    }
    std::uint64_t& seen_word = seen[func_id / 64];
    if ((seen_word >> (func_id % 64) & 1) != 0)
      return Verdict::invalid("child %d: func_id %d is given twice", i, func_id);
    seen_word |= std::uint64_t{1} << (func_id % 64);
    if (offset % kCallableAlignment != 0) {
      return Verdict::invalid("child %d: offset %u is not a multiple of %zu", i, offset, kCallableAlignment);
    }
    if (offset > storage || offset < chip->binary_size) {
      return Verdict::invalid("child %d: offset %u lies outside of the %zu bytes behind the orchestration (%u bytes)",
                              i, offset, storage, chip->binary_size);
    }
    if (Verdict v = check_core_callable(chip->storage() + offset, storage - offset); !v.ok()) {
      return Verdict::invalid("child %d (func_id %d): %s", i, func_id, v.text());
    }
  }
  return Verdict::valid();
}

}  // namespace simpler::abi
