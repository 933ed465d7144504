// The element-wise engine: dst(r, c) = op(a(r, c), b(r, c), ...), operands of any layout, broadcast or not.
//
// What      apply(dst, op, sources...) visits dst's shape. A source with an axis of step 0 is broadcast along it. Where
//           all operands are contiguous along one axis, or constant along it, the loop is one that vectorises; boxes of
//           one shape are visited one by one, all else in strips. 16-bit floats go through blocks of floats: one loop
//           per operation and two per type, not one for each pair.
// Aliasing  dst may be any of the sources, element for element; values are read before the result is written.
#pragma once

#include "math.hpp"
#include "strip.hpp"

namespace pto {
namespace tile_detail {

// ---- one row ----------------------------------------------------------------------------------------------------
// What a source gives in the columns of one row: consecutive elements, or one value read at the start of the row.
template <class T> struct RowElements {
  const T* first;
  PTO_INLINE Compute<T> operator[](int64_t c) const { return load(first[c]); }
};
template <class T> struct RowValue {
  Compute<T> value;
  PTO_INLINE Compute<T> operator[](int64_t) const { return value; }
};
template <class T, bool kConstant> struct Source {
  static constexpr bool kShortFloat = kIsShortFloat<T>;
  const T* base;
  Offset step;
  PTO_INLINE auto row(int64_t r) const {
    if constexpr (kConstant)
      return RowValue<T>{load(base[r * step])};
    else
      return RowElements<T>{base + r * step};
  }
};

template <class Op, class D, class... Rows> PTO_LOOP_PART void apply_row(Op op, D* dst, int64_t cols, Rows... rows) {
  PTO_INDEPENDENT
  for (int64_t c = 0; c < cols; ++c) dst[c] = store<D>(op(rows[c]...));
}

template <class Op, class D, class... Sources>
PTO_LOOP void apply_rows_here(Op op, D* dst, Offset dst_step, int64_t rows, int64_t cols, Sources... sources) {
  for (int64_t r = 0; r < rows; ++r) apply_row(op, dst + r * dst_step, cols, sources.row(r)...);
}

// ---- one row of any operation -----------------------------------------------------------------------------------
template <class Op, class D, class... Rows> PTO_LOOP void apply_row_here(Op op, D* dst, int64_t cols, Rows... rows) {
  apply_row(op, dst, cols, rows...);
}

// Operations that the simulator may bring along.
template <class Op> constexpr bool kExponential = std::is_same<Op, Exp>::value || std::is_same<Op, ExpDif>::value;
template <class Op> constexpr bool kInTable = kExponential<Op> || std::is_same<Op, Log>::value;

// dst may be a source; the last step works in place.
template <class Op, class... Rows>
PTO_INLINE void apply_row_by_table(const SimplerTileKernels& table, float* dst, int64_t cols, Rows... rows) {
  if constexpr (std::is_same<Op, ExpDif>::value)
    apply_row_here(Sub(), dst, cols, rows...);
  else if constexpr (!(std::is_same<Rows, RowElements<float>>::value && ...))
    apply_row_here(Identity(), dst, cols, rows...);
  else
    return (kExponential<Op> ? table.exp : table.log)(dst, rows.first..., cols);
  (kExponential<Op> ? table.exp : table.log)(dst, dst, cols);
}

template <class Op, class D, class... Rows> PTO_INLINE void apply_any_row(Op op, D* dst, int64_t cols, Rows... rows) {
  constexpr bool kByTable = kInTable<Op> && std::is_same<D, float>::value;
  if constexpr (kByTable)
    if (kHosted || sim_state.hooks.kernels != nullptr)
      return apply_row_by_table<Op>(*sim_state.hooks.kernels, dst, cols, rows...);
  if constexpr (!kByTable || !kHosted) apply_row_here(op, dst, cols, rows...);
}

// ---- rows with 16-bit floats --------------------------------------------------------------------------------------
constexpr int kFloatBlock = 512;  // 2 KiB per operand: they stay in the first-level cache together

// Elements from `first` on as floats, in `block` if they are not floats already.
template <class T> PTO_INLINE auto float_block(const RowElements<T>& row, int64_t first, int64_t count, float* block) {
  if constexpr (kIsShortFloat<T>) {
    convert_run(block, row.first + first, count);
    return RowElements<float>{block};
  } else {
    return RowElements<T>{row.first + first};
  }
}
template <class T> PTO_INLINE auto float_block(const RowValue<T>& row, int64_t, int64_t, float*) {
  return RowValue<Compute<T>>{row.value};
}

template <class Op, class D, size_t... kIndex, class... Rows>
PTO_INLINE void apply_row_in_floats(Op op, D* dst, int64_t cols, std::index_sequence<kIndex...>, const Rows&... rows) {
  float blocks[sizeof...(Rows)][kFloatBlock], results[kIsShortFloat<D> ? kFloatBlock : 1];
  for (int64_t c = 0; c < cols; c += kFloatBlock) {
    const int64_t n = cols - c < kFloatBlock ? cols - c : kFloatBlock;
    if constexpr (kIsShortFloat<D>) {
      apply_any_row(op, results, n, float_block(rows, c, n, blocks[kIndex])...);
      convert_run(dst + c, results, n);
    } else {
      apply_any_row(op, dst + c, n, float_block(rows, c, n, blocks[kIndex])...);
    }
  }
}
template <class Op, class D, class... Sources>
__attribute__((noinline)) void apply_rows_in_floats(Op op, D* dst, Offset dst_step, int64_t rows, int64_t cols,
                                                    Sources... sources) {
  for (int64_t r = 0; r < rows; ++r)
    apply_row_in_floats(op, dst + r * dst_step, cols, std::index_sequence_for<Sources...>(), sources.row(r)...);
}

template <class Op, class D, class... Sources>
__attribute__((noinline)) void apply_rows_by_table(Op op, D* dst, Offset dst_step, int64_t rows, int64_t cols,
                                                   Sources... sources) {
  for (int64_t r = 0; r < rows; ++r) apply_any_row(op, dst + r * dst_step, cols, sources.row(r)...);
}

// ---- choice of the loop -----------------------------------------------------------------------------------------
template <class V>
PTO_INLINE Source<typename std::remove_const<typename V::Element>::type, V::Col::kZero> source_of(const V& v) {
  return {v.base, v.row.step()};
}
// Rows of n elements follow each other, or all have one value.
template <class V> PTO_INLINE bool is_dense(const V& v, int n) {
  return V::Col::kZero ? v.row.step() == 0 : v.row.step() == n;
}

template <class Op, class D, class... Sources>
PTO_INLINE void apply_rows(Op op, D* dst, Offset dst_step, int64_t rows, int64_t cols, Sources... sources) {
  if constexpr (kIsShortFloat<D> || (Sources::kShortFloat || ...))
    apply_rows_in_floats(op, dst, dst_step, rows, cols, sources...);
  else if constexpr (kInTable<Op>)
    apply_rows_by_table(op, dst, dst_step, rows, cols, sources...);
  else
    apply_rows_here(op, dst, dst_step, rows, cols, sources...);
}

template <class Op, class DstView, class... Views>
PTO_INLINE void apply_along_rows(const DstView& dst, Op op, const Views&... sources) {
  if ((is_dense(dst, dst.cols) && ... && is_dense(sources, dst.cols)))
    apply_rows(op, dst.base, 0, 1, int64_t{dst.rows} * dst.cols, source_of(sources)...);
  else
    apply_rows(op, dst.base, dst.row.step(), dst.rows, dst.cols, source_of(sources)...);
}

// Rows of dst, or of transposed dst, are contiguous, and those of all operands contiguous or constant.
template <class DstView, class... Views> constexpr bool kAlongRows =
    DstView::Col::kUnit && (kContiguousOrConstant<DstView> && ... && kContiguousOrConstant<Views>);
template <class V> using Transposed = View<typename V::Element, typename V::Col, typename V::Row>;
template <class DstView, class... Views> constexpr bool kAlongEither =
    kAlongRows<DstView, Views...> || kAlongRows<Transposed<DstView>, Transposed<Views>...>;

template <class Op, class DstView, class... Views>
PTO_INLINE void apply_along_either(const DstView& dst, Op op, const Views&... sources) {
  if constexpr (kAlongRows<DstView, Views...>)
    apply_along_rows(dst, op, sources...);
  else
    apply_along_rows(transposed(dst), op, transposed(sources)...);
}

// The part of a view that starts at (r, c) and lies inside one box: its steps are constant.
template <class AxisT> PTO_INLINE AxisT inside_box(const AxisT& axis) { return axis; }
template <int kLength, Offset kStep, Offset kBlock>
PTO_INLINE FixedAxis<kStep> inside_box(const BoxAxis<kLength, kStep, kBlock>&) {
  return {};
}
template <class V> PTO_INLINE auto box_part(const V& v, int r, int c, int rows, int cols) {
  using Row = decltype(inside_box(v.row));
  using Col = decltype(inside_box(v.col));
  return View<typename V::Element, Row, Col>{&v.at(r, c), rows, cols, inside_box(v.row), inside_box(v.col)};
}
template <class V> using BoxPart = View<typename V::Element, decltype(inside_box(std::declval<typename V::Row>())),
                                        decltype(inside_box(std::declval<typename V::Col>()))>;
template <class Op, class DstView, class... Views>
PTO_INLINE void apply_in_boxes(const DstView& dst, Op op, const Views&... sources) {
  for (int c = 0, cols = 0; c < dst.cols; c += cols) {
    cols = run_left(dst.col, c, dst.cols - c);
    ((cols = run_left(sources.col, c, cols)), ...);
    for (int r = 0, rows = 0; r < dst.rows; r += rows) {
      rows = run_left(dst.row, r, dst.rows - r);
      ((rows = run_left(sources.row, r, rows)), ...);
      apply_along_either(box_part(dst, r, c, rows, cols), op, box_part(sources, r, c, rows, cols)...);
    }
  }
}

template <class Shape, class Op, class Dst, class... Sources>
__attribute__((noinline)) void apply_strips(int rows, int cols, Op op, Dst&& dst, Sources&&... sources) {
  for_each_strip<Shape>(rows, cols, [&](int r, int c, int m, int n) {
    apply_along_rows(dst.place(r, c, m, n), op, sources.read(r, c, m, n)...);
    dst.write(r, c, m, n);
  });
}
template <class Op, class DstView, class... Views>
PTO_INLINE void apply_in_strips(const DstView& dst, Op op, const Views&... sources) {
  if constexpr (DstView::Row::kUnit && !DstView::Col::kUnit)
    apply_in_strips(transposed(dst), op, transposed(sources)...);
  else
    apply_strips<StripShape<DstView, Views...>>(dst.rows, dst.cols, op, Strip<DstView>(dst), Strip<Views>(sources)...);
}

// Each row costs calls: boxes, whose rows are short, are worth it only where they are one run in all operands.
template <class Op, class... Views> constexpr bool kCostlyRows =
    kInTable<Op> || (kIsShortFloat<typename std::remove_const<typename Views::Element>::type> || ...);
template <class DstView, class V> constexpr bool kSameBoxes =
    (V::Row::kZero && V::Col::kZero) || (std::is_same<typename V::Row, typename DstView::Row>::value &&
                                         std::is_same<typename V::Col, typename DstView::Col>::value);

template <class Op, class DstView, class... Views>
PTO_INLINE RecordEvent apply(const DstView& dst, Op op, const Views&... sources) {
  if (dst.rows > 0 && dst.cols > 0) {
    if constexpr (kAlongEither<DstView, Views...>)
      apply_along_either(dst, op, sources...);
    else if constexpr (kAlongEither<BoxPart<DstView>, BoxPart<Views>...> &&
                       (!kCostlyRows<Op, DstView, Views...> || (kSameBoxes<DstView, Views> && ...)))
      apply_in_boxes(dst, op, sources...);
    else
      apply_in_strips(dst, op, sources...);
  }
  order_memory();
  return {};
}

// ---- forms of instructions --------------------------------------------------------------------------------------
// A source is read where dst is valid.
template <class Op, class Dst, class... Src>
PTO_INLINE RecordEvent apply_tiles(const char* name, Op op, Dst& dst, Src&... src) {
  const auto to = view(dst, name);
  apply(to, op, source(src, to.rows, to.cols, name)...);
  return wrote(dst, to);
}

// The per-row operand of a row broadcast: a column, or rows of a few elements (32 bytes) that repeat along the columns.
template <class TileT> PTO_INLINE auto column_of(TileT& tile, int rows, const char* name) {
  return across_columns(source(tile, rows, 1, name));
}
template <class TileT> PTO_INLINE auto row_of(TileT& tile, int cols, const char* name) {
  return across_rows(source(tile, 1, cols, name));
}

// True if `candidate` has the shape of a per-row operand and `other` has not.
template <class TileT, class Other>
PTO_INLINE bool is_row_operand(const TileT& candidate, const Other& other, int cols) {
  return candidate.GetValidCol() != cols && other.GetValidCol() == cols;
}

template <class Op> struct Swapped {
  Op op;
  template <class B, class A> PTO_INLINE auto operator()(B b, A a) const { return op(a, b); }
};

// dst(r, c) = op(full(r, c), per_row(r, c mod width)); kSwap exchanges the operands of op.
template <bool kSwap, class Op, class Dst, class Full, class PerRow>
PTO_INLINE RecordEvent apply_row_operand(const char* name, Op op, Dst& dst, Full& full, PerRow& per_row) {
  const Swapped<Op> swapped = {op};
  const auto to = view(dst, name);
  const auto whole = source(full, to.rows, to.cols, name);
  const int width = per_row.GetValidCol();
  if (width <= 1 || PerRow::Cols == 1) {
    const auto column = column_of(per_row, to.rows, name);
    if constexpr (kSwap)
      apply(to, swapped, whole, column);
    else
      apply(to, op, whole, column);
    return wrote(dst, to);
  }
  const auto block = source(per_row, to.rows, width, name);
  for (int c = 0; c < to.cols; c += width) {
    const int n = to.cols - c < width ? to.cols - c : width;
    const auto part = window(to, 0, c, to.rows, n);
    if constexpr (kSwap)
      apply(part, swapped, window(whole, 0, c, to.rows, n), block);
    else
      apply(part, op, window(whole, 0, c, to.rows, n), block);
  }
  return wrote(dst, to);
}

template <class Op, class Dst, class A, class B>
PTO_INLINE RecordEvent apply_row_broadcast(const char* name, Op op, Dst& dst, A& a, B& b) {
  constexpr bool kColumnA = !A::isRowMajor && A::Cols == 1, kColumnB = !B::isRowMajor && B::Cols == 1;
  if constexpr (kColumnB)
    return apply_row_operand<false>(name, op, dst, a, b);
  else if constexpr (kColumnA)
    return apply_row_operand<true>(name, op, dst, b, a);
  else if (is_row_operand(a, b, dst.GetValidCol()))
    return apply_row_operand<true>(name, op, dst, b, a);
  else
    return apply_row_operand<false>(name, op, dst, a, b);
}

template <class Op, class Dst, class A, class B>
PTO_INLINE RecordEvent apply_col_broadcast(const char* name, Op op, Dst& dst, A& a, B& b) {
  const auto to = view(dst, name);
  if (a.GetValidRow() == 1 && b.GetValidRow() != 1)
    apply(to, op, row_of(a, to.cols, name), source(b, to.rows, to.cols, name));
  else
    apply(to, op, source(a, to.rows, to.cols, name), row_of(b, to.cols, name));
  return wrote(dst, to);
}

// What both sources have in common is combined, the rest copied from the one that has it.
template <class Op, class Dst, class A, class B>
PTO_INLINE RecordEvent apply_partial(const char* name, Op op, Dst& dst, A& a, B& b) {
  const auto to = view(dst, name);
  const auto left = view(a, name), right = view(b, name);
  need_written(a, 0, 0, to.rows, to.cols, name);
  need_written(b, 0, 0, to.rows, to.cols, name);
  const auto cut = [](int x, int y, int end, int(&at)[3]) {
    at[0] = 0;
    at[1] = x < y ? x : y;
    at[2] = x < y ? y : x;
    for (int& place : at) place = place < end ? place : end;
  };
  int row[3], col[3];
  cut(left.rows, right.rows, to.rows, row);
  cut(left.cols, right.cols, to.cols, col);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) {
      const int r = row[i], c = col[j], rows = row[i + 1] - r, cols = col[j + 1] - c;
      if (rows <= 0 || cols <= 0) continue;
      const bool in_left = row[i + 1] <= left.rows && col[j + 1] <= left.cols;
      const bool in_right = row[i + 1] <= right.rows && col[j + 1] <= right.cols;
      const auto part = window(to, r, c, rows, cols);
      if (in_left && in_right)
        apply(part, op, window(left, r, c, rows, cols), window(right, r, c, rows, cols));
      else if (in_left)
        apply(part, Identity(), window(left, r, c, rows, cols));
      else if (in_right)
        apply(part, Identity(), window(right, r, c, rows, cols));
    }
  return wrote(dst, to);
}

}  // namespace tile_detail
}  // namespace pto
