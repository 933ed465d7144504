// Every instruction on elements in vector tiles, for every element type and layout: cases as data.
//
// What      A case (sweep_cases.h) runs one instruction on tiles of one element type and layout with random valid
//           regions, operands that are distinct or the same tile, and edge values, and compares the whole physical tile
//           with plain loops in double (integers: 64 bits). register_cases<T>() adds those of an element type; the
//           tests of this folder run them, and coverage_test.cpp compares the list with the table of instructions.
#pragma once

#include "unit/support/tile_support.h"

namespace tile_test {

struct SweepCase {
  std::string instruction, element, layout;
  void (*run)(Random&);
};
inline std::vector<SweepCase>& sweep_cases() {
  static std::vector<SweepCase> all;
  return all;
}
// Runs what was registered for an element type.
inline void run_sweep(const char* element) {
  int count = 0;
  for (const SweepCase& one : sweep_cases()) {
    if (one.element != element) continue;
    SCOPED_TRACE(one.instruction + " " + one.element + " " + one.layout);
    Random random(std::hash<std::string>()(one.instruction + one.layout));
    one.run(random);
    if (::testing::Test::HasFatalFailure()) return;
    ++count;
  }
  EXPECT_GT(count, 100);
}

template <class T> const char* name_of_type() {
  if constexpr (std::is_same_v<T, ::half>) return "half";
  if constexpr (std::is_same_v<T, ::bfloat16_t>) return "bfloat16_t";
  if constexpr (std::is_same_v<T, float>) return "float";
  if constexpr (std::is_same_v<T, int8_t>) return "int8_t";
  if constexpr (std::is_same_v<T, uint8_t>) return "uint8_t";
  if constexpr (std::is_same_v<T, int16_t>) return "int16_t";
  if constexpr (std::is_same_v<T, uint16_t>) return "uint16_t";
  if constexpr (std::is_same_v<T, int32_t>) return "int32_t";
  if constexpr (std::is_same_v<T, uint32_t>) return "uint32_t";
}

// ---- layouts --------------------------------------------------------------------------------------------------------

constexpr int kSweepRows = 64, kSweepCols = 64;  // a whole number of boxes in every layout
struct RowMajorLayout {
  static constexpr const char* name = "row-major";
  template <class T, int R = kSweepRows, int C = kSweepCols> using Of = RowTile<T, R, C>;
};
struct ColMajorLayout {
  static constexpr const char* name = "column-major";
  template <class T, int R = kSweepRows, int C = kSweepCols> using Of = ColTile<T, R, C>;
};
template <BLayout kOuter, SLayout kInner> struct BoxedLayout {
  static constexpr const char* name = kOuter == BLayout::ColMajor   ? kInner == SLayout::RowMajor ? "Nz" : "Nn"
                                      : kInner == SLayout::RowMajor ? "Zz"
                                                                    : "Zn";
  template <class T, int R = kSweepRows, int C = kSweepCols> using Of =
      Tile<TileType::Vec, T, R, C, kOuter, DYNAMIC, DYNAMIC, kInner>;
};
using NzLayout = BoxedLayout<BLayout::ColMajor, SLayout::RowMajor>;
using ZnLayout = BoxedLayout<BLayout::RowMajor, SLayout::ColMajor>;
using ZzLayout = BoxedLayout<BLayout::RowMajor, SLayout::RowMajor>;
using NnLayout = BoxedLayout<BLayout::ColMajor, SLayout::ColMajor>;

// ---- values ---------------------------------------------------------------------------------------------------------

template <class T> using Wide = std::conditional_t<kFloating<T>, double, int64_t>;
template <class T> Wide<T> widen(T value) {
  if constexpr (kFloating<T>)
    return decode(value);
  else
    return value;
}
template <class T> T narrow(Wide<T> value) {
  if constexpr (kFloating<T>)
    return encode<T>(value);
  else
    return static_cast<T>(value);
}
// Now and then a special value.
template <class T> T sweep_value(Random& random) {
  if (random.between(0, 7) != 0) return random.value<T>();
  if constexpr (kFloating<T>) {
    const double edges[] = {0.0,  -0.0,  1.0,   -1.0,    INFINITY, -INFINITY, NAN,
                            6e-8, -6e-8, 1e-41, 65504.0, -65504.0, 3.3e38,    2.0};
    return encode<T>(edges[random.between(0, 13)]);
  } else {
    const T edges[] = {0, 1, static_cast<T>(-1), std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
    return edges[random.between(0, 4)];
  }
}
template <class TileT> std::vector<typename TileT::DType> fill_sweep(TileT& tile, Random& random) {
  std::vector<typename TileT::DType> values(TileT::Numel);
  for (int r = 0; r < TileT::Rows; ++r)
    for (int c = 0; c < TileT::Cols; ++c)
      element(tile, r, c) = values[r * TileT::Cols + c] = sweep_value<typename TileT::DType>(random);
  return values;
}
// Within `places` units of the last place of the element type; 0: the same value.
template <class T> bool close_to(T got, Wide<T> want, int places) {
  if constexpr (kFloating<T>) {
    const T rounded = encode<T>(want);
    if (same_value(got, rounded)) return true;
    const double g = decode(got), w = decode(rounded);
    if (places == 0 || std::isnan(g) || std::isnan(w) || std::isinf(g) || std::isinf(w)) return false;
    const int fraction = std::is_same_v<T, float> ? 23 : std::is_same_v<T, ::half> ? 10 : 7;
    const int lowest = std::is_same_v<T, ::half> ? -24 : std::is_same_v<T, float> ? -149 : -133;
    const double unit = std::ldexp(1.0, std::max(w == 0 ? lowest : std::ilogb(w) - fraction, lowest));
    return std::fabs(g - w) <= places * unit;
  } else {
    (void)places;
    return got == narrow<T>(want);
  }
}
template <class TileT, class W>
void expect_tile(TileT& tile, const std::vector<W>& want, const std::vector<int>& places) {
  const auto got = contents(tile);
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_TRUE(close_to<typename TileT::DType>(got[i], want[i], places[i]))
        << "row " << i / TileT::Cols << ", column " << i % TileT::Cols << ": " << decode(got[i]) << ", not "
        << static_cast<double>(want[i]) << "; valid " << tile.GetValidRow() << " x " << tile.GetValidCol();
}
template <class T> std::vector<Wide<T>> widened(const std::vector<T>& values) {
  std::vector<Wide<T>> all;
  for (T value : values) all.push_back(widen(value));
  return all;
}

}  // namespace tile_test
