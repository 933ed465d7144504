// What the tests of the tile library share: simulated cores, reference numbers, tiles addressed by the documented storage
// order. Nothing here uses the library's own arithmetic or layouts.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <pto/pto-inst.hpp>

#include "executor/written_tiles.h"
#include "tile/available_kernels.h"

namespace tile_test {

using namespace pto;

// ---- simulated cores ------------------------------------------------------------------------------------------------

struct CheckFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Memory that the cores of one block share, by key.
struct Cluster {
  void* piece(uint64_t key, uint64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex);
    auto& memory = pieces[key];
    if (memory == nullptr) {
      memory.reset(static_cast<unsigned char*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)));
      std::memset(memory.get(), 0, bytes);
    }
    return memory.get();
  }
  struct Free {
    void operator()(unsigned char* memory) const { std::free(memory); }
  };
  std::mutex mutex;
  std::map<uint64_t, std::unique_ptr<unsigned char, Free>> pieces;
};

struct Core {
  static constexpr uint32_t kBytes[] = SIMPLER_TILE_MEMORY_BYTES_INIT;

  explicit Core(uint32_t lane = 0, Cluster* cluster = nullptr) : lane(lane), cluster(cluster) {
    for (int i = 0; i < SIMPLER_TILE_MEMORY_COUNT; ++i) memory[i].reset(new Line[kBytes[i] / 64]());
  }
  struct alignas(64) Line {
    unsigned char bytes[64];
  };
  std::unique_ptr<Line[]> memory[SIMPLER_TILE_MEMORY_COUNT];
  simpler::executor::WrittenTiles written;
  uint32_t lane;
  Cluster* cluster;
  uint32_t cube_cores = 1, vector_cores = 2;  // of the task that the core works on

  static thread_local Core* current;
};
inline thread_local Core* Core::current = nullptr;

// The kernels that SIMPLER_SIM_TILE names, as in the simulator; without it none, so that the portable loops are tested.
// CTest runs the tests of the tile library once for each (tests/CMakeLists.txt).
inline const SimplerTileKernels* kernels_of_environment() {
  const char* name = std::getenv("SIMPLER_SIM_TILE");
  if (name == nullptr) return nullptr;
  for (auto table = simpler::tile::available_kernels(); *table != nullptr; ++table)
    if (std::strcmp((*table)->target, name) == 0) return *table;
  return nullptr;
}

// Runs on one core; failed checks throw CheckFailed.
class TileTest : public ::testing::Test {
 protected:
  TileTest() {
    SimplerSimHooks hooks = {};
    hooks.version = SIMPLER_SIM_HOOKS_VERSION;
    hooks.size = sizeof hooks;
    hooks.tile_memory = [](uint32_t location, uint64_t* bytes) -> void* {
      *bytes = Core::kBytes[location];
      return Core::current->memory[location].get();
    };
    hooks.sub_block_id = []() { return Core::current->lane; };
    hooks.pipe_state = [](uint64_t key, uint64_t bytes) -> void* {
      return Core::current->cluster == nullptr ? nullptr : Core::current->cluster->piece(key, bytes);
    };
    hooks.park = [](const volatile uint32_t*, uint32_t) { std::this_thread::yield(); };
    hooks.unpark = [](const volatile uint32_t*) {};
    hooks.check_failed = [](const char* text) { throw CheckFailed(text); };
    hooks.kernels = kernels_of_environment();
    hooks.task_cores = [](uint32_t kinds) {
      return ((kinds & SIMPLER_TASK_CUBE_CORES) != 0 ? Core::current->cube_cores : 0) +
             ((kinds & SIMPLER_TASK_VECTOR_CORES) != 0 ? Core::current->vector_cores : 0);
    };
    // As in the simulator: reading what no instruction has written fails each of these tests.
    hooks.tile_written = [](const SimplerTileKind* kind, const void* base, int32_t row, int32_t col, int32_t rows,
                            int32_t cols) {
      Core::current->written.write(kind->memory, Core::current->memory[kind->memory].get(),
                                   simpler::executor::tile_region(*kind, base, row, col, rows, cols));
    };
    hooks.tile_read = [](const SimplerTileKind* kind, const void* base, int32_t row, int32_t col, int32_t rows,
                         int32_t cols, const char* instruction) {
      const std::string fault = Core::current->written.fault_of_read(*kind, Core::current->memory[kind->memory].get(),
                                                                     base, row, col, rows, cols, instruction);
      if (!fault.empty()) throw CheckFailed(fault);
    };
    simpler_sim_register_hooks(&hooks);
    Core::current = &core_;
  }
  void SetUp() override {
    const char* name = std::getenv("SIMPLER_SIM_TILE");
    if (name != nullptr && kernels_of_environment() == nullptr) GTEST_SKIP() << "this processor has no " << name;
  }
  ~TileTest() override {
    SimplerSimHooks none = {};
    none.version = SIMPLER_SIM_HOOKS_VERSION;
    none.size = sizeof none;
    simpler_sim_register_hooks(&none);
    Core::current = nullptr;
  }
  Core core_;
};

// The text of the check that `call` fails; empty if it fails none.
template <class Call> std::string failure_of(Call call) {
  try {
    call();
  } catch (const CheckFailed& failed) {
    return failed.what();
  }
  return "";
}

// ---- reference numbers ----------------------------------------------------------------------------------------------

// A 16-bit float format, from its definition: all its values, sorted.
class ShortFloat {
 public:
  ShortFloat(int exponent_bits, int fraction_bits) : exponent_bits_(exponent_bits), fraction_bits_(fraction_bits) {
    for (int code = 0; code < 0x8000; ++code) magnitudes_.push_back(defined(static_cast<uint16_t>(code)));
  }
  double decode(uint16_t code) const {
    return std::copysign(magnitudes_[code & 0x7fff], (code & 0x8000) != 0 ? -1 : 1);
  }
  // The code of `value` rounded in a mode; the magnitudes of the format are in the order of their codes.
  uint16_t encode(double value, RoundMode mode = RoundMode::CAST_RINT) const {
    const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    const int infinity = ((1 << exponent_bits_) - 1) << fraction_bits_;
    if (std::isnan(value)) return static_cast<uint16_t>(infinity | (1 << (fraction_bits_ - 1)));
    const double magnitude = std::fabs(value);
    if (std::isinf(magnitude)) return static_cast<uint16_t>(sign | infinity);
    int low = 0, high = infinity - 1;  // the largest code that is not above the magnitude
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (decode(static_cast<uint16_t>(middle)) <= magnitude)
        low = middle;
      else
        high = middle - 1;
    }
    const double below = decode(static_cast<uint16_t>(low));
    if (below == magnitude) return static_cast<uint16_t>(sign | low);
    const double step = low == infinity - 1 ? below - decode(static_cast<uint16_t>(low - 1))
                                            : decode(static_cast<uint16_t>(low + 1)) - below;
    const double part = (magnitude - below) / step;  // beyond the largest value it may exceed 1
    bool up = false;
    switch (mode) {
      case RoundMode::CAST_NONE:
      case RoundMode::CAST_RINT: up = part > 0.5 || (part == 0.5 && low % 2 != 0); break;
      case RoundMode::CAST_ROUND: up = part >= 0.5; break;
      case RoundMode::CAST_FLOOR: up = sign != 0; break;
      case RoundMode::CAST_CEIL: up = sign == 0; break;
      case RoundMode::CAST_TRUNC: up = false; break;
      case RoundMode::CAST_ODD: up = low % 2 == 0; break;
    }
    return static_cast<uint16_t>(sign | (low + (up ? 1 : 0)));
  }

 private:
  double defined(uint16_t code) const {
    const int bias = (1 << (exponent_bits_ - 1)) - 1, top = (1 << exponent_bits_) - 1;
    const int exponent = (code >> fraction_bits_) & top, fraction = code & ((1 << fraction_bits_) - 1);
    double value;
    if (exponent == top)
      value = fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
    else if (exponent == 0)
      value = std::ldexp(fraction, 1 - bias - fraction_bits_);
    else
      value = std::ldexp((1 << fraction_bits_) + fraction, exponent - bias - fraction_bits_);
    return value;
  }
  int exponent_bits_, fraction_bits_;
  std::vector<double> magnitudes_;  // by code
};
inline const ShortFloat kHalfFormat(5, 10), kBfloatFormat(8, 7);

template <class To, class From> To bits_as(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(static_cast<void*>(&to), &from, sizeof to);
  return to;
}

// An element type's values as doubles, which hold all of them; encode rounds to nearest even.
template <class T> double decode(T value) {
  if constexpr (std::is_same_v<T, ::half>)
    return kHalfFormat.decode(bits_as<uint16_t>(value));
  else if constexpr (std::is_same_v<T, ::bfloat16_t>)
    return kBfloatFormat.decode(bits_as<uint16_t>(value));
  else
    return static_cast<double>(value);
}
template <class T> T encode(double value) {
  if constexpr (std::is_same_v<T, ::half>)
    return bits_as<T>(kHalfFormat.encode(value));
  else if constexpr (std::is_same_v<T, ::bfloat16_t>)
    return bits_as<T>(kBfloatFormat.encode(value));
  else
    return static_cast<T>(value);
}
template <class T> constexpr bool kShortFloat = std::is_same_v<T, ::half> || std::is_same_v<T, ::bfloat16_t>;
template <class T> constexpr bool kFloating = std::is_floating_point_v<T> || kShortFloat<T>;

template <class T> bool same_bits(T a, T b) { return std::memcmp(&a, &b, sizeof a) == 0; }
template <class T> bool same_value(T a, T b) {  // any NaN equals any NaN
  return same_bits(a, b) || (kFloating<T> && std::isnan(decode(a)) && std::isnan(decode(b)));
}

// ---- random input ---------------------------------------------------------------------------------------------------

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  double in(double low, double high) { return std::uniform_real_distribution<double>(low, high)(engine_); }
  // Values that all arithmetic can bear: floats of a few magnitudes, integers of all.
  template <class T> T value() {
    if constexpr (kFloating<T>)
      return encode<T>(in(-1, 1) * std::ldexp(1.0, between(-4, 5)));
    else
      return static_cast<T>(engine_());
  }
  // Any bit pattern.
  template <class T> T bits() {
    const uint64_t pattern = engine_();
    T value;
    std::memcpy(static_cast<void*>(&value), &pattern, sizeof value);
    return value;
  }
  template <class T> std::vector<T> values(size_t count) {
    std::vector<T> all(count);
    for (T& one : all) one = value<T>();
    return all;
  }

 private:
  std::mt19937_64 engine_;
};

// ---- tiles ----------------------------------------------------------------------------------------------------------

template <class T, int R, int C> using RowTile = Tile<TileType::Vec, T, R, C, BLayout::RowMajor, DYNAMIC, DYNAMIC>;
template <class T, int R, int C> using ColTile = Tile<TileType::Vec, T, R, C, BLayout::ColMajor, DYNAMIC, DYNAMIC>;
template <class T, int R, int C> using NzTile =
    Tile<TileType::Mat, T, R, C, BLayout::ColMajor, DYNAMIC, DYNAMIC, SLayout::RowMajor>;
template <class T, int R, int C> using ZnTile =
    Tile<TileType::Mat, T, R, C, BLayout::RowMajor, DYNAMIC, DYNAMIC, SLayout::ColMajor>;
template <class T, int R, int C> using ZzTile =
    Tile<TileType::Mat, T, R, C, BLayout::RowMajor, DYNAMIC, DYNAMIC, SLayout::RowMajor>;
template <class T, int R, int C> using NnTile =
    Tile<TileType::Mat, T, R, C, BLayout::ColMajor, DYNAMIC, DYNAMIC, SLayout::ColMajor>;
template <class T, int R, int C> using NzVectorTile =
    Tile<TileType::Vec, T, R, C, BLayout::ColMajor, DYNAMIC, DYNAMIC, SLayout::RowMajor>;
template <class T, int R, int C> using AccTile =
    Tile<TileType::Acc, T, R, C, BLayout::ColMajor, DYNAMIC, DYNAMIC, SLayout::RowMajor, 1024>;

// Where element (r, c) lies, from the documentation of the layouts.
template <class TileT> int64_t documented_offset(int r, int c) {
  constexpr int kBytes = sizeof(typename TileT::DType);
  if (!TileT::isBoxedLayout) return TileT::isRowMajor ? int64_t{r} * TileT::Cols + c : int64_t{c} * TileT::Rows + r;
  const bool inner_rows = TileT::SFractal == SLayout::RowMajor;
  int box_rows = inner_rows ? 16 : 32 / kBytes, box_cols = inner_rows ? 32 / kBytes : 16;
  if (TileT::SFractalSize == 1024) box_rows = box_cols = 16;
  if (TileT::SFractalSize == 32) box_rows = inner_rows ? 16 : 2, box_cols = inner_rows ? 2 : 16;
  const int br = r / box_rows, ir = r % box_rows, bc = c / box_cols, ic = c % box_cols;
  const int64_t box = TileT::BFractal == BLayout::RowMajor
                          ? int64_t{br} * TileT::Cols * box_rows + int64_t{bc} * box_rows * box_cols
                          : int64_t{bc} * TileT::Rows * box_cols + int64_t{br} * box_rows * box_cols;
  return box + (inner_rows ? ir * box_cols + ic : ic * box_rows + ir);
}

template <class TileT> typename TileT::DType& element(TileT& tile, int r, int c) {
  return tile.data()[documented_offset<TileT>(r, c)];
}

// Fills the whole physical tile; returns the values in row-major order.
template <class TileT> std::vector<typename TileT::DType> fill_random(TileT& tile, Random& random) {
  auto values = random.values<typename TileT::DType>(TileT::Numel);
  for (int r = 0; r < TileT::Rows; ++r)
    for (int c = 0; c < TileT::Cols; ++c) element(tile, r, c) = values[r * TileT::Cols + c];
  return values;
}
template <class TileT> std::vector<typename TileT::DType> contents(TileT& tile) {
  std::vector<typename TileT::DType> values(TileT::Numel);
  for (int r = 0; r < TileT::Rows; ++r)
    for (int c = 0; c < TileT::Cols; ++c) values[r * TileT::Cols + c] = element(tile, r, c);
  return values;
}

// A few extents of a tile: nothing, one, all, and something odd.
inline std::vector<int> extents(int capacity, Random& random) {
  std::vector<int> all = {0, 1, capacity, random.between(1, capacity), random.between(1, capacity)};
  return all;
}

}  // namespace tile_test
