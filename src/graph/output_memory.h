// The contents of memory that a task allocates with an initial value.
#pragma once
#include <cstdint>
#include <cstring>

namespace simpler::graph {

// Fills `bytes` with the low `width` bytes of `value`, doubling what is there already.
inline void fill(char* target, std::uint64_t bytes, std::uint64_t value, std::uint64_t width) {
  if (bytes == 0) return;
  std::uint64_t done = width < bytes ? width : bytes;
  std::memcpy(target, &value, done);
  while (done < bytes) {
    const std::uint64_t step = done < bytes - done ? done : bytes - done;
    std::memcpy(target + done, target, step);
    done += step;
  }
}

}  // namespace simpler::graph
