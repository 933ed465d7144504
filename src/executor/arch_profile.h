// ArchProfile: what distinguishes one chip from another, as data.
#pragma once
#include <cstdint>
#include <string_view>

namespace simpler::executor {

struct ArchProfile {
  std::string_view name;
  int clusters;              // of the full chip: 1 AIC and 2 AIV each
  int device_threads;        // control threads that the board starts by default
  std::uint64_t counter_hz;  // system counter
};

inline constexpr ArchProfile kArchProfiles[] = {
    {"a2a3", 24, 4, 50'000'000},
    {"a5", 36, 5, 1'000'000'000},
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
