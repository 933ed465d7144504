// PhaseBuffer: where a device's program leaves the times of a run, in counts of its system counter.
//
// Layout    Header; then for each launched thread its ten phases; then for each its sixteen timing slots. So the size
//           depends on the chip's number of launched threads. A slot or phase that nobody started has kUnset as start.
// Protocol  The host writes kUnset everywhere before a launch, and reads after the run. tail_used tells whether the slots
//           are worth reading.
#pragma once
#include <cstddef>
#include <cstdint>

namespace simpler::abi {

enum class Phase : int {
  kRunWall,
  kPreamble,
  kSoLoad,
  kGraphBuild,
  kPostOrch,
  kOrchWindow,
  kSchedWindow,
  kConfigValidate,
  kArenaWire,
  kSmReset,
};
inline constexpr int kPhases = 10;
inline constexpr int kPhaseSlots = 16;

struct PhaseHeader {
  std::uint64_t tail_used;
  std::uint64_t reserved;
};
struct PhaseSpan {
  static constexpr std::uint64_t kUnset = UINT64_MAX;
  std::uint64_t start;
  std::uint64_t end;
};

constexpr std::size_t phase_tail_offset(int threads) {
  return sizeof(PhaseHeader) + static_cast<std::size_t>(threads) * kPhases * sizeof(PhaseSpan);
}
constexpr std::size_t phase_buffer_bytes(int threads) {
  return phase_tail_offset(threads) + static_cast<std::size_t>(threads) * kPhaseSlots * sizeof(PhaseSpan);
}
static_assert(phase_tail_offset(6) == 976 && phase_buffer_bytes(6) == 2512, "a2a3");
static_assert(phase_tail_offset(14) == 2256 && phase_buffer_bytes(14) == 5840, "a5");

}  // namespace simpler::abi
