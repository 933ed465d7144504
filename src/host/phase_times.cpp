#include "host/phase_times.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/log.h"

namespace simpler::host {
namespace {

using abi::PhaseSpan;
using driver::Driver;

// First start and last end of those that were both started and ended; start is kUnset if there is none.
PhaseSpan reduce(const PhaseSpan* spans, int threads, int stride) {
  PhaseSpan whole{PhaseSpan::kUnset, 0};
  for (int i = 0; i < threads; ++i) {
    const PhaseSpan& span = spans[i * stride];
    if (span.start == PhaseSpan::kUnset || span.end <= span.start) continue;
    whole.start = std::min(whole.start, span.start);
    whole.end = std::max(whole.end, span.end);
  }
  return whole;
}

}  // namespace

PhaseTimes reduce_phases(const void* buffer, int threads, std::uint64_t counter_hz) {
  PhaseTimes times;
  const char* const bytes = static_cast<const char*>(buffer);
  abi::PhaseHeader header;
  std::memcpy(&header, bytes, sizeof header);
  const PhaseSpan* const spans = reinterpret_cast<const PhaseSpan*>(bytes + sizeof header);
  const PhaseSpan* const tail = reinterpret_cast<const PhaseSpan*>(bytes + abi::phase_tail_offset(threads));
  const auto ns = [&](std::uint64_t counts) {
    return static_cast<std::int64_t>(static_cast<double>(counts) * 1e9 / static_cast<double>(counter_hz));
  };
  std::array<PhaseSpan, abi::kPhases> whole;
  std::uint64_t origin = PhaseSpan::kUnset;
  for (int p = 0; p < abi::kPhases; ++p) {
    whole[static_cast<std::size_t>(p)] = reduce(spans + p, threads, abi::kPhases);
    if (p != static_cast<int>(abi::Phase::kRunWall))
      origin = std::min(origin, whole[static_cast<std::size_t>(p)].start);
  }
  std::array<PhaseSpan, abi::kPhaseSlots> slots;
  slots.fill({PhaseSpan::kUnset, 0});
  std::uint64_t first_slot = PhaseSpan::kUnset;
  if (header.tail_used != 0) {
    for (int s = 0; s < abi::kPhaseSlots; ++s) {
      slots[static_cast<std::size_t>(s)] = reduce(tail + s, threads, abi::kPhaseSlots);
      first_slot = std::min(first_slot, slots[static_cast<std::size_t>(s)].start);
    }
  }
  if (origin == PhaseSpan::kUnset) origin = whole[0].start != PhaseSpan::kUnset ? whole[0].start : first_slot;
  const auto span = [&](const PhaseSpan& counts, bool with_start) {
    if (counts.start == PhaseSpan::kUnset) return Span{};
    return Span{with_start && counts.start >= origin ? ns(counts.start - origin) : 0, ns(counts.end - counts.start)};
  };
  for (std::size_t p = 0; p < whole.size(); ++p) times.phases[p] = span(whole[p], p != 0);
  for (std::size_t s = 0; s < slots.size(); ++s) times.slots[s] = span(slots[s], true);
  return times;
}

bool device_phases_wanted() {
  static const bool enabled = [] {
    const char* text = std::getenv("SIMPLER_DEVICE_STRACE_ENABLE");
    return text == nullptr || std::strcmp(text, "0") != 0;
  }();
  return enabled && log::enabled(log::Level::kTiming);
}

std::uint64_t PhaseBuffer::ensure() {
  if (!device_phases_wanted()) return 0;
  const Status status = block_.grow(allocator_, abi::phase_buffer_bytes(arch_.launch_threads));
  if (status.ok()) return block_.address();
  log::host(log::Level::kWarn, __func__, "runs have no device times: %s", status.message().c_str());
  return 0;
}

bool PhaseBuffer::arm() {
  if (block_.address() == 0) return false;
  if (unset_.empty()) {
    unset_.assign(block_.bytes(), 0);
    for (std::size_t at = sizeof(abi::PhaseHeader); at < unset_.size(); at += sizeof(PhaseSpan))
      std::memset(&unset_[at], 0xFF, sizeof(std::uint64_t));
  }
  const Status status = allocator_.device().run("copy_to_device", &Driver::copy_to_device, block_.address(),
                                                unset_.data(), unset_.size());
  if (!status.ok())
    log::host(log::Level::kWarn, __func__, "this run has no device times: %s", status.message().c_str());
  return status.ok();
}

PhaseTimes PhaseBuffer::read(std::uint64_t armed) {
  if (armed == 0) return {};
  Device& device = allocator_.device();
  const std::size_t tail = abi::phase_tail_offset(arch_.launch_threads);
  std::vector<char> bytes(abi::phase_buffer_bytes(arch_.launch_threads), 0);
  Status status = device.run("copy_from_device", &Driver::copy_from_device, bytes.data(), armed, tail);
  abi::PhaseHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (status.ok() && header.tail_used != 0) {
    status = device.run("copy_from_device", &Driver::copy_from_device, bytes.data() + tail, armed + tail,
                        bytes.size() - tail);
  }
  if (status.ok()) return reduce_phases(bytes.data(), arch_.launch_threads, arch_.counter_hz);
  log::host(log::Level::kWarn, __func__, "this run has no device times: %s", status.message().c_str());
  return {};
}

}  // namespace simpler::host
