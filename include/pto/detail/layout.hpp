// View: address, shape and layout of a two-dimensional operand. Everything that instructions read or write is one.
//
// What      Element (r, c) lies at base[row.offset(r) + col.offset(c)]: every layout here is a sum of two axes. Tiles
//           have axes known at compile time, global memory has strides known at run time, broadcasting is an axis of
//           step 0, transposing exchanges the axes.
// Lifetime  A view borrows its memory for one instruction.
#pragma once

#include "element.hpp"
#include "sim.hpp"

namespace pto {
namespace tile_detail {

using Offset = int64_t;

// Elements at i * kStep.
template <Offset kStep> struct FixedAxis {
  static constexpr int kRun = 0;  // no boxes: one run of any length
  static constexpr bool kUnit = kStep == 1, kZero = kStep == 0;
  static constexpr Offset step() { return kStep; }
  static constexpr Offset offset(Offset i) { return i * kStep; }
};

// Elements at i * stride, known at run time.
struct FreeAxis {
  static constexpr int kRun = 0;
  static constexpr bool kUnit = false, kZero = false;
  Offset stride;
  Offset step() const { return stride; }
  Offset offset(Offset i) const { return i * stride; }
};

// Boxes of kLength elements, kStep apart inside a box, boxes kBlock apart. `first` is the index where the view starts.
template <int kLength, Offset kStep, Offset kBlock> struct BoxAxis {
  static constexpr int kRun = kLength;
  static constexpr bool kUnit = kStep == 1, kZero = false;
  int first = 0;
  static constexpr Offset step() { return kStep; }
  Offset offset(Offset i) const {
    const uint32_t at = static_cast<uint32_t>(first + i);
    return static_cast<Offset>(at / kLength) * kBlock + static_cast<Offset>(at % kLength) * kStep;
  }
};

// An axis whose boxes follow each other without a gap is plain.
template <int kLength, Offset kStep, Offset kBlock> using Axis =
    typename std::conditional<kBlock == kLength * kStep, FixedAxis<kStep>, BoxAxis<kLength, kStep, kBlock>>::type;

template <class T, class RowAxis, class ColAxis> struct View {
  using Element = T;
  using Row = RowAxis;
  using Col = ColAxis;

  T* base;
  int rows, cols;
  RowAxis row;
  ColAxis col;

  T& at(Offset r, Offset c) const { return base[row.offset(r) + col.offset(c)]; }
};

template <class T, class R, class C> PTO_INLINE View<T, C, R> transposed(const View<T, R, C>& v) {
  return {v.base, v.cols, v.rows, v.col, v.row};
}

template <Offset kStep> PTO_INLINE Offset advance(FixedAxis<kStep>&, int by) { return by * kStep; }
PTO_INLINE Offset advance(FreeAxis& axis, int by) { return by * axis.stride; }
template <int kLength, Offset kStep, Offset kBlock>
PTO_INLINE Offset advance(BoxAxis<kLength, kStep, kBlock>& axis, int by) {
  axis.first += by;
  return 0;
}

// The part of `v` that starts at (r, c).
template <class T, class R, class C>
PTO_INLINE View<T, R, C> window(View<T, R, C> v, int r, int c, int rows, int cols) {
  v.base += advance(v.row, r);
  v.base += advance(v.col, c);
  v.rows = rows;
  v.cols = cols;
  return v;
}

// One value per row, the same in all columns; one per column, the same in all rows; one for all.
template <class T, class R, class C> PTO_INLINE View<T, R, FixedAxis<0>> across_columns(const View<T, R, C>& v) {
  return {v.base, v.rows, 1, v.row, {}};
}
template <class T, class R, class C> PTO_INLINE View<T, FixedAxis<0>, C> across_rows(const View<T, R, C>& v) {
  return {v.base, 1, v.cols, {}, v.col};
}
template <class T> PTO_INLINE View<const T, FixedAxis<0>, FixedAxis<0>> everywhere(const T& value) {
  return {&value, 1, 1, {}, {}};
}

// Plain row-major memory.
template <class T> PTO_INLINE View<T, FreeAxis, FixedAxis<1>> row_major(T* base, int rows, int cols, Offset pitch) {
  return {base, rows, cols, {pitch}, {}};
}

// Instructions are ordered as written, also where two tiles of different element types share memory: without this a
// compiler may exchange a store of one type with a load of another.
PTO_INLINE void order_memory() { __asm__ __volatile__("" ::: "memory"); }

}  // namespace tile_detail
}  // namespace pto
