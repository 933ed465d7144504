// TPRINT: what a tile or a global tensor holds, on standard output.
#pragma once

#include "copy.hpp"

namespace pto {
namespace tile_detail {

template <class T> inline void print_element(const T& element) {
  if constexpr (kIsFloating<T> || std::is_same<T, ::float8_e8m0_t>::value)
    printf(" %g", static_cast<double>(load(element)));
  else
    printf(" %lld", static_cast<long long>(element));
}
template <class V> inline void print_rows(const V& v) {
  for (int r = 0; r < v.rows; ++r) {
    for (int c = 0; c < v.cols; ++c) print_element(v.at(r, c));
    printf("\n");
  }
}

}  // namespace tile_detail

// A line that says what it is, then the valid rows of a tile, or all rows of a global tensor in its matrix picture. One
// core's lines may stand between those of another.
template <class T, class... Scratch> PTO_INLINE void TPRINT(T& object, Scratch&...) {
  using namespace tile_detail;
  if constexpr (kIsTile<T>) {
    const auto rows = view(object, "TPRINT");
    printf("%s tile of %d x %d, valid %d x %d\n", name_of(T::Loc), T::Rows, T::Cols, rows.rows, rows.cols);
    print_rows(rows);
  } else {
    need_memory(object, "TPRINT");
    const Extents held = extents_of(object);
    printf("global tensor of %lld x %lld, layout %s\n", (long long)held.rows, (long long)held.cols, name_of(T::layout));
    using Element = Stored<typename T::RawDType>;
    const int rows = static_cast<int>(held.rows), cols = static_cast<int>(held.cols);
    if (rows > 0 && cols > 0) {
      Element* const copy =
          static_cast<Element*>(malloc(sizeof(Element) * static_cast<size_t>(rows) * static_cast<size_t>(cols)));
      if (copy == nullptr) fail("TPRINT: no memory for a copy of %d x %d elements", rows, cols);
      const auto all = row_major(copy, rows, cols, cols);
      for_each_piece(object, rows, cols, [&](const auto& piece, int r, int c) {
        transfer(window(all, r, c, piece.rows, piece.cols), piece, PutSame());
      });
      print_rows(all);
      free(copy);
    }
  }
  fflush(stdout);
}

}  // namespace pto
