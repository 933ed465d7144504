// WrittenTiles: which parts of a simulated core's tile memories its running block has written.
//
// What      One byte per 32 bytes of memory holds the number of the block that wrote there last. Whatever touches a
//           unit counts for all of it: an answer "not written" is always true, an answer "written" means somewhere in
//           the unit. By address, so that tiles which alias share it.
// Threads   Used by the thread that runs the core's block.
// Errors    Where the system refuses the memory, everything counts as written.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>

#include "base/virtual_memory.h"
#include "sim_hooks.h"

namespace simpler::executor {

// Bytes of the on-chip memories, by the numbers of sim_hooks.h.
inline constexpr std::uint32_t kTileMemoryBytes[SIMPLER_TILE_MEMORY_COUNT] = SIMPLER_TILE_MEMORY_BYTES_INIT;

// Bytes of the memories before this one.
constexpr std::uint32_t tile_memory_before(std::uint32_t location) {
  std::uint32_t bytes = 0;
  for (std::uint32_t i = 0; i < location; ++i) bytes += kTileMemoryBytes[i];
  return bytes;
}

// Elements of tile memory: element (r, c) lies at base + row(r) + col(c), see SimplerTileAxis.
struct TileRegion {
  const void* base;
  SimplerTileAxis row, col;
  std::int32_t rows, cols, element_bytes;
};
// Part of the tile of a kind that lies at `base`.
TileRegion tile_region(const SimplerTileKind& kind, const void* base, std::int32_t row, std::int32_t col,
                       std::int32_t rows, std::int32_t cols);

class WrittenTiles {
 public:
  static constexpr std::uint32_t kUnit = 32;  // what tiles and their rows are aligned to

  // Nothing is written any more.
  void begin_block() {
    if (++block_ != 0) return;
    block_ = 1;  // zero stands for "never"
    if (!units_.as<void>()) return;
    std::memset(units_.as<void>(), 0, kUnits);
  }

  // Elements of memory `location`, which starts at `memory`; what lies outside of it is ignored.
  void write(std::uint32_t location, const void* memory, const TileRegion& region);
  // True if an element has not been written; its place in the region.
  bool find_unwritten(std::uint32_t location, const void* memory, const TileRegion& region, std::int32_t* row,
                      std::int32_t* col);

  // What is wrong with an instruction that reads those elements of a tile: a sentence, or "".
  std::string fault_of_read(const SimplerTileKind& kind, const void* memory, const void* base, std::int32_t row,
                            std::int32_t col, std::int32_t rows, std::int32_t cols, const char* instruction);

 private:
  static constexpr std::uint32_t kUnits = tile_memory_before(SIMPLER_TILE_MEMORY_COUNT) / kUnit;

  std::uint8_t* units_of(std::uint32_t location) {
    if (location >= SIMPLER_TILE_MEMORY_COUNT || (units_.bytes() == 0 && !units_.reserve(kUnits))) return nullptr;
    return units_.as<std::uint8_t>() + tile_memory_before(location) / kUnit;
  }

  VirtualMemory units_;
  std::uint8_t block_ = 1;
};

}  // namespace simpler::executor
