// GlobalTensor: a strided five-dimensional view of global memory; it owns nothing.
// Instructions see it as rows and columns; for_each_piece cuts that picture into parts of constant strides.
#pragma once

#include "tile.hpp"

namespace pto {
namespace tile_detail {

// Five numbers, each fixed by the type or given at run time.
template <int64_t... kValues> struct FiveNumbers {
  static constexpr int kDynamic = ((kValues == DYNAMIC ? 1 : 0) + ...);

  // The dynamic entries, in order.
  template <class... N> static void fill(int64_t (&values)[5], N... given) {
    constexpr int64_t fixed[5] = {kValues...};
    if constexpr (sizeof...(N) == 5) {
      const int64_t all[5] = {static_cast<int64_t>(given)...};
      for (int d = 0; d < 5; ++d) values[d] = fixed[d] == DYNAMIC ? all[d] : fixed[d];
    } else {
      const int64_t some[sizeof...(N) + 1] = {static_cast<int64_t>(given)..., 0};
      int next = 0;
      for (int d = 0; d < 5; ++d) {
        if (fixed[d] != DYNAMIC)
          values[d] = fixed[d];
        else
          values[d] = next < static_cast<int>(sizeof...(N)) ? some[next++] : 1;
      }
    }
  }
};

}  // namespace tile_detail

// Extents of the five dimensions. Without arguments dynamic extents are 1; five arguments give all of them (fixed ones
// are ignored); otherwise there is one argument for each dynamic extent.
template <int64_t N1 = DYNAMIC, int64_t N2 = DYNAMIC, int64_t N3 = DYNAMIC, int64_t N4 = DYNAMIC, int64_t N5 = DYNAMIC>
struct Shape {
  using Numbers = tile_detail::FiveNumbers<N1, N2, N3, N4, N5>;
  static constexpr int64_t staticShape[5] = {N1, N2, N3, N4, N5};
  int64_t shape[5];

  Shape() { Numbers::fill(shape); }
  template <class... N, class = typename std::enable_if<(sizeof...(N) > 0) &&
                                                        (std::is_convertible<N, int64_t>::value && ...)>::type>
  Shape(N... values) {  // NOLINT: braces in place of a shape, as in Global(data, {rows, cols})
    static_assert(sizeof...(N) == 5 || sizeof...(N) == Numbers::kDynamic,
                  "a Shape takes five values or one for each DYNAMIC dimension");
    Numbers::fill(shape, values...);
  }
};

// Distances between neighbours in the five dimensions, in elements. Constructors as for Shape.
template <int64_t S1 = DYNAMIC, int64_t S2 = DYNAMIC, int64_t S3 = DYNAMIC, int64_t S4 = DYNAMIC, int64_t S5 = DYNAMIC>
struct Stride {
  using Numbers = tile_detail::FiveNumbers<S1, S2, S3, S4, S5>;
  static constexpr int64_t staticStride[5] = {S1, S2, S3, S4, S5};
  int64_t stride[5];

  Stride() { Numbers::fill(stride); }
  template <class... N, class = typename std::enable_if<(sizeof...(N) > 0) &&
                                                        (std::is_convertible<N, int64_t>::value && ...)>::type>
  Stride(N... values) {  // NOLINT: as for Shape
    static_assert(sizeof...(N) == 5 || sizeof...(N) == Numbers::kDynamic,
                  "a Stride takes five values or one for each DYNAMIC dimension");
    Numbers::fill(stride, values...);
  }
};

template <class Element, class ShapeT, class StrideT, Layout kLayout = Layout::ND> struct GlobalTensor {
  using DType = Element;
  using RawDType = typename std::remove_cv<Element>::type;
  using Shape = ShapeT;
  using Stride = StrideT;
  static constexpr Layout layout = kLayout;

  GlobalTensor() = default;
  GlobalTensor(Element* data, const Shape& shape = Shape(), const Stride& stride = Stride())
      : data_(data), shape_(shape), stride_(stride) {}

  Element* data() const { return data_; }
  void SetAddr(Element* data) { data_ = data; }

  int64_t GetShape(int dimension) const { return shape_.shape[dimension]; }
  int64_t GetStride(int dimension) const { return stride_.stride[dimension]; }
  template <int kDimension> static constexpr int64_t GetShape() { return Shape::staticShape[kDimension]; }
  template <int kDimension> static constexpr int64_t GetStride() { return Stride::staticStride[kDimension]; }
  template <int... kDimensions, class... N> void SetShape(N... values) {
    static_assert(sizeof...(kDimensions) == sizeof...(N), "one value for each dimension");
    static_assert(((Shape::staticShape[kDimensions] == DYNAMIC) && ...), "only DYNAMIC dimensions can be set");
    ((shape_.shape[kDimensions] = static_cast<int64_t>(values)), ...);
  }
  template <int... kDimensions, class... N> void SetStride(N... values) {
    static_assert(sizeof...(kDimensions) == sizeof...(N), "one value for each dimension");
    static_assert(((Stride::staticStride[kDimensions] == DYNAMIC) && ...), "only DYNAMIC dimensions can be set");
    ((stride_.stride[kDimensions] = static_cast<int64_t>(values)), ...);
  }

 private:
  Element* data_ = nullptr;
  Shape shape_;
  Stride stride_;
};

// Shape and stride of a dense matrix of R x C in a layout.
template <class T, int64_t R, int64_t C, Layout kLayout = Layout::ND> using TileShape2D =
    typename std::conditional<kLayout == Layout::NZ,
                              Shape<1, C / (C0_SIZE_BYTE / int64_t{sizeof(T)}), R / FRACTAL_NZ_ROW, FRACTAL_NZ_ROW,
                                    C0_SIZE_BYTE / int64_t{sizeof(T)}>,
                              Shape<1, 1, 1, R, C>>::type;
template <class T, int64_t R, int64_t C, Layout kLayout = Layout::ND> using BaseShape2D = typename std::conditional<
    kLayout == Layout::NZ,
    Stride<R * C, R*(C0_SIZE_BYTE / int64_t{sizeof(T)}), FRACTAL_NZ_ROW*(C0_SIZE_BYTE / int64_t{sizeof(T)}),
           C0_SIZE_BYTE / int64_t{sizeof(T)}, 1>,
    typename std::conditional<kLayout == Layout::DN, Stride<R * C, R * C, R * C, 1, R>,
                              Stride<R * C, R * C, R * C, C, 1>>::type>::type;

namespace tile_detail {

template <class T> struct IsGlobal : std::false_type {};
template <class T, class S, class D, Layout L> struct IsGlobal<GlobalTensor<T, S, D, L>> : std::true_type {};
template <class T> constexpr bool kIsGlobal = IsGlobal<typename std::remove_cv<T>::type>::value;

constexpr const char* name_of(Layout layout) {
  switch (layout) {
    case Layout::ND: return "ND";
    case Layout::DN: return "DN";
    case Layout::NZ: return "NZ";
    case Layout::MX_A_ZZ: return "MX_A_ZZ";
    case Layout::MX_B_NN: return "MX_B_NN";
    default: return "unknown";
  }
}

// Rows and columns of the matrix picture of a global tensor; see for_each_piece.
struct Extents {
  int64_t rows, cols;
};
template <class GlobalT> PTO_INLINE Extents extents_of(const GlobalT& global) {
  const auto n = [&](int d) { return global.GetShape(d); };
  switch (GlobalT::layout) {
    case Layout::DN: return {n(3), n(0) * n(1) * n(2) * n(4)};
    case Layout::NZ: return {n(2) * n(3), n(0) * n(1) * n(4)};
    case Layout::MX_A_ZZ: return {n(1) * n(3), n(2) * n(4)};
    case Layout::MX_B_NN: return {n(2) * n(4), n(1) * n(3)};
    default: return {n(0) * n(1) * n(2) * n(3), n(4)};
  }
}

// A stride that the type fixes at 1 stays known to the compiler.
template <int64_t kStride> using StrideAxis = typename std::conditional<kStride == 1, FixedAxis<1>, FreeAxis>::type;
template <class AxisT> PTO_INLINE AxisT axis_of(Offset stride) {
  if constexpr (AxisT::kUnit)
    return {};
  else
    return {stride};
}

// Calls f(view, r, c) for parts of the matrix picture of `global`: the part that starts at row r and column c. Together
// the parts cover rows x cols; that extent is the tile's, not the global's own.
//   ND  rows are dimensions 0 to 3 counted through, columns dimension 4
//   DN  rows are dimension 3, columns dimensions 0 to 2 and 4
//   NZ  rows are dimensions 2 and 3, columns 0, 1 and 4
//   MX_A_ZZ  rows 1 and 3 (16 each), columns 2 and 4 (2 each);  MX_B_NN the other way round
template <class GlobalT, class F> PTO_INLINE void for_each_piece(GlobalT& global, int rows, int cols, F f) {
  constexpr Layout kLayout = GlobalT::layout;
  static_assert(kLayout == Layout::ND || kLayout == Layout::DN || kLayout == Layout::NZ || kLayout == Layout::MX_A_ZZ ||
                    kLayout == Layout::MX_B_NN,
                "this memory layout cannot be transferred");
  const auto n = [&](int d) { return global.GetShape(d); };
  const auto s = [&](int d) { return global.GetStride(d); };
  constexpr bool kMx = kLayout == Layout::MX_A_ZZ || kLayout == Layout::MX_B_NN;
  constexpr bool kSwapped = kLayout == Layout::MX_B_NN;  // dimension 3 runs along columns
  using Strides = typename GlobalT::Stride;
  using RowAxis = StrideAxis<Strides::staticStride[kSwapped ? 4 : 3]>;
  using ColAxis = StrideAxis<Strides::staticStride[kSwapped ? 3 : 4]>;
  const RowAxis row_axis = axis_of<RowAxis>(s(kSwapped ? 4 : 3));
  const ColAxis col_axis = axis_of<ColAxis>(s(kSwapped ? 3 : 4));

  // Extents of a part; a dimension without outer ones has no end.
  int64_t piece_rows = rows, piece_cols = cols;
  if (kLayout == Layout::ND || kLayout == Layout::NZ) piece_rows = n(3);
  if (kLayout == Layout::DN || kLayout == Layout::NZ) piece_cols = n(4);
  if (kMx) piece_rows = kSwapped ? 2 : 16, piece_cols = kSwapped ? 16 : 2;
  if (kLayout == Layout::NZ && s(2) == n(3) * s(3)) piece_rows = rows;  // boxes without gaps
  if (piece_rows <= 0 || piece_rows > rows) piece_rows = rows;
  if (piece_cols <= 0 || piece_cols > cols) piece_cols = cols;

  // Offset of the q-th part along the dimensions 2, 1, 0 (ND, DN), or along those of a box grid.
  const auto counted = [&](int64_t q) {
    const int64_t n2 = n(2) > 0 ? n(2) : 1, n1 = n(1) > 0 ? n(1) : 1;
    return (q % n2) * s(2) + (q / n2 % n1) * s(1) + (q / n2 / n1) * s(0);
  };
  const auto row_offset = [&](int64_t q) -> Offset {
    if (kLayout == Layout::ND) return counted(q);
    if (kLayout == Layout::DN) return 0;
    if (kLayout == Layout::MX_A_ZZ) return q * s(1);
    return q * s(2);
  };
  const auto col_offset = [&](int64_t q) -> Offset {
    if (kLayout == Layout::ND) return 0;
    if (kLayout == Layout::DN) return counted(q);
    if (kLayout == Layout::MX_A_ZZ) return q * s(2);
    if (kLayout == Layout::MX_B_NN) return q * s(1);
    const int64_t n1 = n(1) > 0 ? n(1) : 1;
    return (q % n1) * s(1) + (q / n1) * s(0);
  };
  using T = Stored<typename GlobalT::DType>;
  for (int c = 0; c < cols; c += static_cast<int>(piece_cols)) {
    const int width = cols - c < piece_cols ? cols - c : static_cast<int>(piece_cols);
    for (int r = 0; r < rows; r += static_cast<int>(piece_rows)) {
      const int height = rows - r < piece_rows ? rows - r : static_cast<int>(piece_rows);
      T* base = reinterpret_cast<T*>(global.data()) + row_offset(r / piece_rows) + col_offset(c / piece_cols);
      const View<T, RowAxis, ColAxis> piece = {base, height, width, row_axis, col_axis};
      if constexpr (RowAxis::kUnit || ColAxis::kUnit)
        f(piece, r, c);
      else if (col_axis.stride == 1)
        f(View<T, RowAxis, FixedAxis<1>>{base, height, width, row_axis, {}}, r, c);
      else if (row_axis.stride == 1)
        f(View<T, FixedAxis<1>, ColAxis>{base, height, width, {}, col_axis}, r, c);
      else
        f(piece, r, c);
    }
  }
}

}  // namespace tile_detail

// TASSIGN(tile, address): byte offset in the tile's memory, or an absolute address inside it.
// TASSIGN(global, pointer): points the global tensor elsewhere.
template <class T, class Address> PTO_INLINE void TASSIGN(T& object, Address address) {
  if constexpr (tile_detail::kIsGlobal<T>) {
    object.SetAddr(reinterpret_cast<typename T::DType*>(address));
  } else if constexpr (std::is_pointer<Address>::value) {
    tile_detail::TilePlace::of(object) = tile_detail::place_tile<T>(reinterpret_cast<uintptr_t>(address));
  } else {
    static_assert(std::is_integral<Address>::value || std::is_enum<Address>::value,
                  "TASSIGN: a tile's place is a number of bytes (an integer) or an address");
    tile_detail::TilePlace::of(object) = tile_detail::place_tile<T>(static_cast<uint64_t>(address));
  }
}
template <auto kAddress, class T> PTO_INLINE void TASSIGN(T& object) { TASSIGN(object, kAddress); }

// Gives dst the storage of src: another shape of the same bytes, no copy.
template <class Dst, class Src> PTO_INLINE RecordEvent TRESHAPE(Dst& dst, Src& src) {
  static_assert(Dst::Loc == Src::Loc, "TRESHAPE: both tiles are in the same memory");
  static_assert(Dst::Numel * sizeof(typename Dst::DType) == Src::Numel * sizeof(typename Src::DType),
                "TRESHAPE: both tiles have the same number of bytes");
  static_assert(Dst::isBoxedLayout == Src::isBoxedLayout, "TRESHAPE: both tiles are boxed, or neither is");
  tile_detail::TilePlace::of(dst) = reinterpret_cast<typename Dst::DType*>(tile_detail::view(src, "TRESHAPE").base);
  return {};
}

}  // namespace pto
