// ArchProfile: what distinguishes one chip from another, as data.
#pragma once
#include <cstdint>
#include <string_view>

#include "abi/kernel_args.h"

namespace simpler::executor {

struct ArchProfile {
  std::string_view name;
  int clusters;              // of the full chip: 1 AIC and 2 AIV each
  int physical_clusters;     // with those that no launch uses
  int device_threads;        // control threads of a run: most, and by default
  int launch_threads;        // started for them at most; the surplus leaves at once
  std::uint64_t counter_hz;  // system counter
  abi::KernelArgsLayout kernel_args;
};

inline constexpr ArchProfile kArchProfiles[] = {
    {"a2a3", 24, 25, 4, 6, 50'000'000, abi::kKernelArgsA2A3},
    {"a5", 36, 36, 5, 14, 1'000'000'000, abi::kKernelArgsA5},
};

inline const ArchProfile* find_arch(std::string_view name) {
  for (const ArchProfile& profile : kArchProfiles) {
    if (profile.name == name) return &profile;
  }
  return nullptr;
}

inline constexpr int kVectorLanes = 2;         // AIV cores of a cluster
inline constexpr int kDefaultSimClusters = 8;  // what the simulator models unless told otherwise

}  // namespace simpler::executor
