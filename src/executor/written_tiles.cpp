#include "executor/written_tiles.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

namespace simpler::executor {
namespace {

std::int64_t offset_of(const SimplerTileAxis& axis, std::int64_t i) {
  if (axis.run == 0) return i * axis.step;
  const std::int64_t at = axis.first + i;
  return at / axis.run * axis.block + at % axis.run * axis.step;
}
// How many of `wanted` indices from i on are `step` apart.
std::int64_t run_left(const SimplerTileAxis& axis, std::int64_t i, std::int64_t wanted) {
  return axis.run == 0 ? wanted : std::min<std::int64_t>(wanted, axis.run - (axis.first + i) % axis.run);
}

// Calls f(offset, elements) for the runs of contiguous elements that the region consists of, until f answers false.
template <typename F> bool for_each_run(const TileRegion& region, F f) {
  const bool by_rows = region.col.step == 1 || region.row.step != 1;
  const SimplerTileAxis &outer = by_rows ? region.row : region.col, &inner = by_rows ? region.col : region.row;
  const std::int64_t outer_count = by_rows ? region.rows : region.cols;
  const std::int64_t inner_count = by_rows ? region.cols : region.rows;
  for (std::int64_t i = 0; i < inner_count;) {
    const std::int64_t wide = inner.step == 1 ? run_left(inner, i, inner_count - i) : 1;
    for (std::int64_t o = 0; o < outer_count;) {
      const std::int64_t high = run_left(outer, o, outer_count - o);
      const std::int64_t at = offset_of(inner, i) + offset_of(outer, o);
      if (outer.step == wide) {
        if (!f(at, wide * high)) return false;
      } else {
        for (std::int64_t k = 0; k < high; ++k)
          if (!f(at + k * outer.step, wide)) return false;
      }
      o += high;
    }
    i += wide;
  }
  return true;
}

std::int64_t distance(const void* from, const void* to) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from));
}

struct Units {
  std::int64_t first, count;
};
// The units that `bytes` bytes from `start` on touch; count 0 if they are not inside the memory.
Units units_of_run(std::int64_t start, std::int64_t bytes, std::int64_t memory_bytes) {
  if (start < 0 || bytes <= 0 || start + bytes > memory_bytes) return {0, 0};
  const std::int64_t first = start / WrittenTiles::kUnit;
  return {first, (start + bytes - 1) / WrittenTiles::kUnit - first + 1};
}

bool all_are(const std::uint8_t* units, std::int64_t count, std::uint8_t value) {
  return units[0] == value && std::memcmp(units, units + 1, static_cast<std::size_t>(count - 1)) == 0;
}

// Moves an axis by `by` indices; what the base has to move by.
std::int64_t advance(SimplerTileAxis* axis, std::int32_t by) {
  if (axis->run == 0) return by * axis->step;
  axis->first += by;
  return 0;
}

// The words for what is missing, and for the rest of the sentence.
std::string missing_part(std::uint32_t access, std::int32_t row, std::int32_t col) {
  char text[96];
  if (access == SIMPLER_TILE_ACCESS_PLACES)
    std::snprintf(text, sizeof text, "element %d of", col);
  else if (access == SIMPLER_TILE_ACCESS_MASK)
    std::snprintf(text, sizeof text, "the mask bits of row %d from column %d on in", row, col * 8);
  else
    std::snprintf(text, sizeof text, "element (%d, %d) of", row, col);
  return text;
}

}  // namespace

TileRegion tile_region(const SimplerTileKind& kind, const void* base, std::int32_t row, std::int32_t col,
                       std::int32_t rows, std::int32_t cols) {
  SimplerTileAxis row_axis = kind.row, col_axis = kind.col;
  const std::int64_t moved = advance(&row_axis, row) + advance(&col_axis, col);
  return {
      static_cast<const char*>(base) + moved * kind.element_bytes, row_axis, col_axis, rows, cols, kind.element_bytes};
}

void WrittenTiles::write(std::uint32_t location, const void* memory, const TileRegion& region) {
  std::uint8_t* const units = units_of(location);
  if (units == nullptr) return;
  const std::int64_t base = distance(memory, region.base);
  for_each_run(region, [&](std::int64_t at, std::int64_t elements) {
    const Units run =
        units_of_run(base + at * region.element_bytes, elements * region.element_bytes, kTileMemoryBytes[location]);
    std::memset(units + run.first, block_, static_cast<std::size_t>(run.count));
    return true;
  });
}

bool WrittenTiles::find_unwritten(std::uint32_t location, const void* memory, const TileRegion& region,
                                  std::int32_t* row, std::int32_t* col) {
  const std::uint8_t* const units = units_of(location);
  if (units == nullptr) return false;
  const std::int64_t base = distance(memory, region.base);
  const auto written = [&](std::int64_t at, std::int64_t elements) {
    const Units run =
        units_of_run(base + at * region.element_bytes, elements * region.element_bytes, kTileMemoryBytes[location]);
    return run.count == 0 || all_are(units + run.first, run.count, block_);
  };
  if (for_each_run(region, written)) return false;
  for (std::int32_t r = 0; r < region.rows; ++r)
    for (std::int32_t c = 0; c < region.cols; ++c)
      if (!written(offset_of(region.row, r) + offset_of(region.col, c), 1)) {
        *row = r;
        *col = c;
        return true;
      }
  return false;
}

std::string WrittenTiles::fault_of_read(const SimplerTileKind& kind, const void* memory, const void* base,
                                        std::int32_t row, std::int32_t col, std::int32_t rows, std::int32_t cols,
                                        const char* instruction) {
  std::int32_t r = 0, c = 0;
  if (!find_unwritten(kind.memory, memory, tile_region(kind, base, row, col, rows, cols), &r, &c)) return {};
  const bool mask = kind.access == SIMPLER_TILE_ACCESS_MASK;
  char tile[160];
  std::snprintf(tile, sizeof tile, " a %s tile of %d x %d at 0x%" PRIx64 " %s read, but nothing has written %s",
                kind.name, kind.rows, kind.cols, distance(memory, base), mask ? "are" : "is", mask ? "them" : "it");
  return std::string(instruction) + ": " + missing_part(kind.access, row + r, col + c) + tile +
         " since the block began";
}

}  // namespace simpler::executor
