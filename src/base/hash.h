// FNV-1a, 64 bits (Fowler, Noll, Vo): the hash of callables and keys, the same on host and device. C++17, no libraries.
#pragma once
#include <cstddef>
#include <cstdint>

namespace simpler {

constexpr std::uint64_t kFnvBasis = 0xcbf29ce484222325ull;
constexpr std::uint64_t kFnvPrime = 0x100000001b3ull;

inline std::uint64_t fnv1a(const void* bytes, std::size_t count, std::uint64_t seed = kFnvBasis) {
  const unsigned char* at = static_cast<const unsigned char*>(bytes);
  std::uint64_t hash = seed;
  for (std::size_t i = 0; i < count; ++i) hash = (hash ^ at[i]) * kFnvPrime;
  return hash;
}

}  // namespace simpler
