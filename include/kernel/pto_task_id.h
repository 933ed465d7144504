// PTO2TaskId: names one task of a run. ring << 32 | local, where local counts the tasks of that ring from 0.
// An aggregate, so that arrays of it need no constructor.
#pragma once
#include <cstdint>

struct PTO2TaskId {
  uint64_t raw;

  static constexpr PTO2TaskId make(uint8_t ring, uint32_t local) { return {static_cast<uint64_t>(ring) << 32 | local}; }
  static constexpr PTO2TaskId invalid() { return {UINT64_MAX}; }
  constexpr uint8_t ring() const { return static_cast<uint8_t>(raw >> 32); }
  constexpr uint32_t local() const { return static_cast<uint32_t>(raw); }
  constexpr bool is_valid() const { return raw != UINT64_MAX; }
  constexpr bool is_invalid() const { return raw == UINT64_MAX; }
  friend constexpr bool operator==(PTO2TaskId a, PTO2TaskId b) { return a.raw == b.raw; }
  friend constexpr bool operator!=(PTO2TaskId a, PTO2TaskId b) { return a.raw != b.raw; }
};
static_assert(sizeof(PTO2TaskId) == 8, "task ids cross the border as one 64-bit word");
