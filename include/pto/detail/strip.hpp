// Strips: parts of operands as dense rows on the stack, so that the engines have loops over contiguous rows only.
//
// What      An engine visits its operands in parts of at most StripShape's size. Operands whose rows are contiguous, or
//           constant, are taken where they lie (then parts may be as large as the operands are); of the others the copy
//           engine brings each part into a strip, and back out of it where it is a result.
// Order     Parts go along the columns first, so that what an engine carries from one to the next is one value (or a few)
//           per row. kCols is a multiple of what an engine treats as one: partial results, bytes of a mask.
// Lifetime  A strip borrows its operand for one instruction and holds one part at a time.
#pragma once

#include "copy.hpp"

namespace pto {
namespace tile_detail {

template <class V> constexpr bool kContiguousOrConstant =
    V::Row::kRun == 0 && (V::Col::kUnit || V::Col::kZero) && V::Col::kRun == 0;

constexpr int kUnlimited = std::numeric_limits<int>::max();
constexpr int kStripCols = 128, kStripBytes = 8192;  // a few strips fit into the first-level cache together
constexpr int smaller(int a, int b) { return a < b ? a : b; }

template <class... Views> struct StripShape {
  static constexpr bool kDirect = (kContiguousOrConstant<Views> && ...);
  static constexpr int kRows = kUnlimited, kCols = kUnlimited;
};
template <class V, class... Views> struct StripShape<V, Views...> {
  static constexpr bool kDirect = kContiguousOrConstant<V> && StripShape<Views...>::kDirect;
  static constexpr int kCols = kDirect ? kUnlimited : kStripCols;
  static constexpr int kRows =
      kDirect ? kUnlimited
              : smaller(kStripBytes / kStripCols / int(sizeof(typename V::Element)), StripShape<Views...>::kRows);
};

// A view of rows that are contiguous or constant: part of an operand, or of the strip that stands for it.
template <class V> struct Strip {
  static constexpr bool kDirect = kContiguousOrConstant<V>;
  using Element = typename std::remove_const<typename V::Element>::type;

  explicit Strip(const V& operand) : whole(operand) {}  // NOLINT: the elements are written before they are read

  // The part as it is, for a result.
  PTO_INLINE auto place(int r, int c, int rows, int cols) {
    if constexpr (kDirect)
      return window(whole, r, c, rows, cols);
    else
      return row_major(elements, rows, cols, cols);
  }
  PTO_INLINE auto read(int r, int c, int rows, int cols) {
    const auto part = place(r, c, rows, cols);
    if constexpr (!kDirect) transfer(part, window(whole, r, c, rows, cols), PutSame());
    return part;
  }
  // After the part has got its values.
  PTO_INLINE void write(int r, int c, int rows, int cols) {
    if constexpr (!kDirect) transfer(window(whole, r, c, rows, cols), place(0, 0, rows, cols), PutSame());
  }

  const V& whole;
  alignas(64) Element elements[kDirect ? 1 : kStripBytes / sizeof(Element)];
};

// visit(row, column, rows, columns) for the parts of rows x cols elements.
template <class Shape, class Visit> PTO_INLINE void for_each_strip(int rows, int cols, const Visit& visit) {
  for (int r = 0, m = 0; r < rows; r += m) {
    m = smaller(Shape::kRows, rows - r);
    for (int c = 0, n = 0; c < cols; c += n) {
      n = smaller(Shape::kCols, cols - c);
      visit(r, c, m, n);
    }
  }
}

}  // namespace tile_detail
}  // namespace pto
