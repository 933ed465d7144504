// Element-wise instructions, one row each. What they compute is in math.hpp, how they run in elementwise.hpp.
// Every form also takes a trailing scratch tile, which the chip needs for some of them; it is not touched here.
#pragma once

#include "elementwise.hpp"
#include "math.hpp"

namespace pto {

namespace tile_detail {
template <class... Scratch> constexpr bool kScratch = sizeof...(Scratch) <= 1;
template <class Dst, class... Src> constexpr bool kOneType =
    (std::is_same<typename Dst::DType, typename Src::DType>::value && ...);
}  // namespace tile_detail

#define PTO_CHECK_TILES(NAME, ...)                                                                \
  static_assert(tile_detail::kVectorTiles<__VA_ARGS__>,                                           \
                #NAME " takes tiles in vector memory (TileType::Vec); TMOV brings others there"); \
  static_assert(tile_detail::kOneType<__VA_ARGS__>, #NAME ": all operands have one element type");
#define PTO_CHECK_ROW(NAME, ...)     \
  PTO_CHECK_TILES(NAME, __VA_ARGS__) \
  static_assert(tile_detail::kScratch<Scratch...>, #NAME ": at most one scratch tile follows the operands");

// dst = op(a, b)
#define PTO_TILE_TILE(NAME, OP)                                           \
  template <class Dst, class A, class B, class... Scratch>                \
  PTO_INLINE RecordEvent NAME(Dst& dst, A& a, B& b, Scratch&...) {        \
    PTO_CHECK_ROW(NAME, Dst, A, B)                                        \
    return tile_detail::apply_tiles(#NAME, tile_detail::OP(), dst, a, b); \
  }
// dst = op(a, scalar); the scalar has the tile's element type
#define PTO_TILE_SCALAR(NAME, OP)                                                              \
  template <class Dst, class A, class... Scratch>                                              \
  PTO_INLINE RecordEvent NAME(Dst& dst, A& a, typename A::DType scalar, Scratch&...) {         \
    PTO_CHECK_ROW(NAME, Dst, A)                                                                \
    const auto to = tile_detail::view(dst, #NAME);                                             \
    tile_detail::apply(to, tile_detail::OP(), tile_detail::source(a, to.rows, to.cols, #NAME), \
                       tile_detail::everywhere(scalar));                                       \
    return tile_detail::wrote(dst, to);                                                        \
  }
// dst = op(a, b) where one of a and b has a value per row (or per column) only
#define PTO_BROADCAST(NAME, OP, APPLY)                              \
  template <class Dst, class A, class B, class... Scratch>          \
  PTO_INLINE RecordEvent NAME(Dst& dst, A& a, B& b, Scratch&...) {  \
    PTO_CHECK_ROW(NAME, Dst, A, B)                                  \
    return tile_detail::APPLY(#NAME, tile_detail::OP(), dst, a, b); \
  }
#define PTO_UNARY(NAME, OP)                                                                                  \
  template <class Dst, class A, class... Scratch> PTO_INLINE RecordEvent NAME(Dst& dst, A& a, Scratch&...) { \
    PTO_CHECK_ROW(NAME, Dst, A)                                                                              \
    return tile_detail::apply_tiles(#NAME, tile_detail::OP(), dst, a);                                       \
  }
// The four forms of an arithmetic operation.
#define PTO_ARITHMETIC(NAME, OP)                           \
  PTO_TILE_TILE(T##NAME, OP)                               \
  PTO_TILE_SCALAR(T##NAME##S, OP)                          \
  PTO_BROADCAST(TROWEXPAND##NAME, OP, apply_row_broadcast) \
  PTO_BROADCAST(TCOLEXPAND##NAME, OP, apply_col_broadcast)
// Two of them.
#define PTO_TWO_FORMS(NAME, OP) \
  PTO_TILE_TILE(T##NAME, OP)    \
  PTO_TILE_SCALAR(T##NAME##S, OP)
// dst = op(a, b, c), and with a scalar for b
#define PTO_THREE_TILES(NAME, SCALAR_NAME, OP)                                                              \
  template <class Dst, class A, class B, class C> PTO_INLINE RecordEvent NAME(Dst& dst, A& a, B& b, C& c) { \
    PTO_CHECK_TILES(NAME, Dst, A, B, C)                                                                     \
    return tile_detail::apply_tiles(#NAME, tile_detail::OP(), dst, a, b, c);                                \
  }                                                                                                         \
  template <class Dst, class A, class C>                                                                    \
  PTO_INLINE RecordEvent SCALAR_NAME(Dst& dst, A& a, typename A::DType scalar, C& c) {                      \
    PTO_CHECK_TILES(NAME, Dst, A, C)                                                                        \
    const auto to = tile_detail::view(dst, #NAME);                                                          \
    tile_detail::apply(to, tile_detail::OP(), tile_detail::source(a, to.rows, to.cols, #NAME),              \
                       tile_detail::everywhere(scalar), tile_detail::source(c, to.rows, to.cols, #NAME));   \
    return tile_detail::wrote(dst, to);                                                                     \
  }

PTO_ARITHMETIC(ADD, Add)
PTO_ARITHMETIC(SUB, Sub)
PTO_ARITHMETIC(MUL, Mul)
PTO_ARITHMETIC(DIV, Div)
PTO_ARITHMETIC(MAX, Max)
PTO_ARITHMETIC(MIN, Min)
PTO_BROADCAST(TROWEXPANDEXPDIF, ExpDif, apply_row_broadcast)
PTO_BROADCAST(TCOLEXPANDEXPDIF, ExpDif, apply_col_broadcast)

PTO_TWO_FORMS(REM, Rem)
PTO_TWO_FORMS(FMOD, Fmod)
PTO_THREE_TILES(TADDC, TADDSC, AddBoth)
PTO_THREE_TILES(TSUBC, TSUBSC, SubAdd)

PTO_TWO_FORMS(AND, And)
PTO_TWO_FORMS(OR, Or)
PTO_TWO_FORMS(XOR, Xor)
PTO_TWO_FORMS(SHL, ShiftLeft)
PTO_TWO_FORMS(SHR, ShiftRight)

PTO_TILE_TILE(TPRELU, LeakyRelu)
PTO_TILE_SCALAR(TLRELU, LeakyRelu)

PTO_UNARY(TEXP, Exp)
PTO_UNARY(TLOG, Log)
PTO_UNARY(TSQRT, Sqrt)
PTO_UNARY(TRSQRT, Rsqrt)
PTO_UNARY(TRECIP, Recip)
PTO_UNARY(TABS, Abs)
PTO_UNARY(TNEG, Neg)
PTO_UNARY(TNOT, Not)
PTO_UNARY(TRELU, Relu)

#undef PTO_TILE_TILE
#undef PTO_TILE_SCALAR
#undef PTO_BROADCAST
#undef PTO_UNARY
#undef PTO_ARITHMETIC
#undef PTO_TWO_FORMS
#undef PTO_THREE_TILES

// dst = scalar / a
template <class Dst, class A> PTO_INLINE RecordEvent TDIVS(Dst& dst, typename A::DType scalar, A& a) {
  PTO_CHECK_TILES(TDIVS, Dst, A)
  const auto to = tile_detail::view(dst, "TDIVS");
  tile_detail::apply(to, tile_detail::Div(), tile_detail::everywhere(scalar),
                     tile_detail::source(a, to.rows, to.cols, "TDIVS"));
  return tile_detail::wrote(dst, to);
}

// dst = scalar
template <class Dst> PTO_INLINE RecordEvent TEXPANDS(Dst& dst, typename Dst::DType scalar) {
  static_assert(Dst::Loc == TileType::Vec || Dst::Loc == TileType::Mat,
                "TEXPANDS fills tiles in vector or matrix memory (TileType::Vec, TileType::Mat)");
  const auto to = tile_detail::view(dst, "TEXPANDS");
  tile_detail::fill(to, tile_detail::bit_cast<tile_detail::Stored<typename Dst::DType>>(scalar));
  tile_detail::order_memory();
  return tile_detail::wrote(dst, to);
}
// dst(r, c) = src(r, 0)
template <class Dst, class Src> PTO_INLINE RecordEvent TROWEXPAND(Dst& dst, Src& src) {
  PTO_CHECK_TILES(TROWEXPAND, Dst, Src)
  const auto to = tile_detail::view(dst, "TROWEXPAND");
  tile_detail::apply(to, tile_detail::Identity(), tile_detail::column_of(src, to.rows, "TROWEXPAND"));
  return tile_detail::wrote(dst, to);
}
// dst(r, c) = src(0, c)
template <class Dst, class Src> PTO_INLINE RecordEvent TCOLEXPAND(Dst& dst, Src& src) {
  PTO_CHECK_TILES(TCOLEXPAND, Dst, Src)
  const auto to = tile_detail::view(dst, "TCOLEXPAND");
  tile_detail::apply(to, tile_detail::Identity(), tile_detail::row_of(src, to.cols, "TCOLEXPAND"));
  return tile_detail::wrote(dst, to);
}

// The first row counts up from `start`, or down.
template <class Dst, class T, int kDescending = 0> PTO_INLINE RecordEvent TCI(Dst& dst, T start) {
  static_assert(tile_detail::kVectorTiles<Dst>,
                "TCI takes tiles in vector memory (TileType::Vec); TMOV brings others there");
  static_assert(std::is_same<T, typename Dst::DType>::value, "TCI: the start has the tile's element type");
  using Stored = tile_detail::Stored<T>;
  const auto to = tile_detail::view(dst, "TCI");
  for (int c = 0; c < to.cols && to.rows > 0; ++c) {
    const auto first = tile_detail::load(start);
    const auto distance = static_cast<tile_detail::Compute<T>>(c);
    if constexpr (kDescending != 0)
      to.at(0, c) = tile_detail::store<Stored>(tile_detail::Sub()(first, distance));
    else
      to.at(0, c) = tile_detail::store<Stored>(tile_detail::Add()(first, distance));
  }
  tile_detail::order_memory();
  return tile_detail::wrote(dst, tile_detail::window(to, 0, 0, to.rows > 0 ? 1 : 0, to.cols));
}

// Ones on and below (kUpper: above) the diagonal that starts in column `diagonal`, zeros elsewhere.
template <class Dst, int kUpper> PTO_INLINE RecordEvent TTRI(Dst& dst, int diagonal) {
  PTO_CHECK_TILES(TTRI, Dst)
  using Stored = tile_detail::Stored<typename Dst::DType>;
  const auto to = tile_detail::view(dst, "TTRI");
  const Stored one = tile_detail::store<Stored>(1), zero = tile_detail::store<Stored>(0);
  for (int r = 0; r < to.rows; ++r)
    for (int c = 0; c < to.cols; ++c) to.at(r, c) = (kUpper != 0 ? c - r >= diagonal : c - r <= diagonal) ? one : zero;
  tile_detail::order_memory();
  return tile_detail::wrote(dst, to);
}

// op(a, b) where both are valid, the one that is valid elsewhere; where neither is, dst keeps its value.
#define PTO_PARTIAL(NAME, OP)                                               \
  template <class Dst, class A, class B, class... Scratch>                  \
  PTO_INLINE RecordEvent NAME(Dst& dst, A& a, B& b, Scratch&...) {          \
    PTO_CHECK_ROW(NAME, Dst, A, B)                                          \
    return tile_detail::apply_partial(#NAME, tile_detail::OP(), dst, a, b); \
  }
PTO_PARTIAL(TPARTADD, Add)
PTO_PARTIAL(TPARTMUL, Mul)
PTO_PARTIAL(TPARTMAX, Max)
PTO_PARTIAL(TPARTMIN, Min)
#undef PTO_PARTIAL
#undef PTO_CHECK_ROW
#undef PTO_CHECK_TILES

}  // namespace pto
