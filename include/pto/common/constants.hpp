// Enumerations and constants of the tile interface.
#pragma once

#include <type_traits>

#include "../detail/prelude.hpp"

namespace pto {

// A dimension, stride or valid extent that is given at run time.
constexpr int DYNAMIC = -1;

constexpr int C0_SIZE_BYTE = 32;     // one row of an inner box
constexpr int BLOCK_BYTE_SIZE = 32;  // unit of on-chip transfers
constexpr int FRACTAL_NZ_ROW = 16;   // rows of an inner box

struct TileConfig {
  static constexpr int alignedSize = 32;
  static constexpr int fixedRowSize = 16;
  static constexpr int fixedColSize = 16;
  static constexpr int fixedMxRowSize = 16;
  static constexpr int fixedMxColSize = 2;
  static constexpr int fractalABSize = 512;
  static constexpr int fractalCSize = 1024;
  static constexpr int fractalMxSize = 32;
};

enum class TileType { Vec, Mat, Left, Right, Acc, Bias, Scaling, ScaleLeft, ScaleRight };
enum class BLayout { RowMajor = 0, ColMajor = 1 };               // order of elements, or of boxes
enum class SLayout { NoneBox = 0, RowMajor = 1, ColMajor = 2 };  // order inside a box
enum class CompactMode { Null, Normal, RowPlusOne };

enum class Layout { ND, DN, NZ, SCALE, MX_A_ZZ, MX_A_ND, MX_A_DN, MX_B_NN, MX_B_ND, MX_B_DN, MAX };

// What fills the physical tile outside its valid region. PadCustom<v> carries a bit pattern in its low 32 bits.
enum class PadValue : uint64_t { Null = 0, Zero = 1, Max = 2, Min = 3, CustomBase = uint64_t{1} << 32 };

namespace tile_detail {
template <class V> constexpr PadValue pad_of_pattern(V value) {
  static_assert(sizeof(V) <= 4 || std::is_integral<V>::value, "a pad value has at most 32 bits");
  if constexpr (std::is_integral<V>::value)
    return static_cast<PadValue>((uint64_t{1} << 32) | static_cast<uint32_t>(value));
  else if constexpr (sizeof(V) == 4)
    return static_cast<PadValue>((uint64_t{1} << 32) | __builtin_bit_cast(uint32_t, value));
  else
    return static_cast<PadValue>((uint64_t{1} << 32) | __builtin_bit_cast(uint16_t, value));
}
}  // namespace tile_detail

// Pads with a bit pattern (an integer) or, where the language has floating-point template parameters, with a value.
template <auto Value> constexpr PadValue PadCustom = tile_detail::pad_of_pattern(Value);
constexpr PadValue PadValueCustom(float value) { return tile_detail::pad_of_pattern(value); }

enum class RoundMode {
  CAST_NONE = 0,  // of float to integer: towards zero; of float to a shorter float: nearest even
  CAST_RINT,      // nearest, ties to even
  CAST_ROUND,     // nearest, ties away from zero
  CAST_FLOOR,
  CAST_CEIL,
  CAST_TRUNC,
  CAST_ODD,  // an inexact value goes to its odd neighbour
};
enum class SaturationMode { ON, OFF };

enum class AtomicType { AtomicNone = 0, AtomicAdd, AtomicMax, AtomicMin };
enum class ReluPreMode { NoRelu = 0, NormalRelu };
enum class CmpMode { EQ = 0, NE, LT, LE, GT, GE };

// What an instruction returns: the place in program order that others may wait for. Cores run in program order here.
struct RecordEvent {};

}  // namespace pto
