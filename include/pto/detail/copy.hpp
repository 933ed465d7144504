// The copy engine: every instruction that moves elements without computing.
//
// What      transfer(dst, src, put) visits all elements of two views of equal shape, in an order chosen from their
//           axes: long runs where both are contiguous, box by box where one is boxed, small squares where rows of one
//           are columns of the other. `put` says what happens to an element: copied, converted, added.
// Aliasing  dst and src are the same elements or none: a partial overlap has no defined result.
#pragma once

#include <utility>

#include "global.hpp"

namespace pto {
namespace tile_detail {

// ---- what happens to an element -------------------------------------------------------------------------------------
// kBytes: contiguous elements of one type may be moved as bytes.
struct PutSame {
  static constexpr bool kBytes = true;
  template <class D, class S> PTO_INLINE void operator()(D& dst, const S& src) const {
    if constexpr (std::is_same<D, S>::value)
      dst = src;
    else
      dst = bit_cast<D>(src);
  }
};
struct PutCast {
  static constexpr bool kBytes = false;
  template <class D, class S> PTO_INLINE void operator()(D& dst, const S& src) const { dst = cast<D>(src); }
};
// Scales before the cast: the accumulators of quantised products.
struct PutScaled {
  static constexpr bool kBytes = false;
  float scale;
  template <class D, class S> PTO_INLINE void operator()(D& dst, const S& src) const {
    const float value = static_cast<float>(load(src)) * scale;
    if constexpr (std::is_integral<D>::value)
      dst = saturate<D>(__builtin_rintf(value));
    else
      dst = store<D>(static_cast<Compute<D>>(value));
  }
};
template <class Put> struct PutRelu {
  static constexpr bool kBytes = false;
  Put put;
  template <class D, class S> PTO_INLINE void operator()(D& dst, const S& src) const {
    const Compute<S> value = load(src);
    put(dst, store<S>(value > Compute<S>(0) ? value : Compute<S>(0)));
  }
};

// Combines with the element in memory, without losing what other cores or processes combine with it at the same time.
template <AtomicType kKind, class T> PTO_INLINE T combined(T held, T value) {
  const Compute<T> a = load(held), b = load(value);
  if constexpr (kKind == AtomicType::AtomicMax)
    return store<T>(a < b ? b : a);
  else if constexpr (kKind == AtomicType::AtomicMin)
    return store<T>(b < a ? b : a);
  else if constexpr (std::is_integral<T>::value) {
    using U = typename std::make_unsigned<T>::type;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  } else
    return store<T>(a + b);
}
template <AtomicType kKind, class T> PTO_INLINE void combine_atomically(T& target, T value) {
  if constexpr (kKind == AtomicType::AtomicAdd && std::is_integral<T>::value) {
    __atomic_fetch_add(&target, value, __ATOMIC_RELAXED);
  } else {
    using Bits = typename std::conditional<
        sizeof(T) == 1, uint8_t,
        typename std::conditional<sizeof(T) == 2, uint16_t,
                                  typename std::conditional<sizeof(T) == 4, uint32_t, uint64_t>::type>::type>::type;
    typedef Bits __attribute__((may_alias)) Word;
    Word* const word = reinterpret_cast<Word*>(&target);
    Bits held = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(word, &held, bit_cast<Bits>(combined<kKind>(bit_cast<T>(held), value)), true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
  }
}
template <AtomicType kKind> struct PutAtomic {
  static constexpr bool kBytes = false;
  template <class D, class S> PTO_INLINE void operator()(D& dst, const S& src) const {
    combine_atomically<kKind>(dst, cast<D>(src));
  }
};

// ---- runs of 16-bit floats and floats ---------------------------------------------------------------------------
template <class T> constexpr bool kIsShortFloat = kIsHalf<T> || kIsBfloat<T>;
template <class D, class S> constexpr bool kShortensOrWidens =
    (kIsShortFloat<D> && std::is_same<S, float>::value) || (std::is_same<D, float>::value && kIsShortFloat<S>);

template <class D, class S> PTO_LOOP void convert_run_here(D* dst, const S* src, int64_t count) {
  PTO_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) dst[i] = store<D>(load(src[i]));
}
// dst[i] = src[i] to nearest even, one of the two types being float.
template <class D, class S> PTO_INLINE void convert_run(D* dst, const S* src, int64_t count) {
  static_assert(kShortensOrWidens<D, S>, "between float and a 16-bit float");
  const SimplerTileKernels* const table = sim_state.hooks.kernels;
  if constexpr (!kHosted)
    if (table == nullptr) return convert_run_here(dst, src, count);
  if constexpr (kIsHalf<D>)
    table->to_half(reinterpret_cast<uint16_t*>(dst), src, count);
  else if constexpr (kIsBfloat<D>)
    table->to_bfloat(reinterpret_cast<uint16_t*>(dst), src, count);
  else if constexpr (kIsHalf<S>)
    table->from_half(dst, reinterpret_cast<const uint16_t*>(src), count);
  else
    table->from_bfloat(dst, reinterpret_cast<const uint16_t*>(src), count);
}
// True if `Put` on D and S is that conversion.
template <class Put, class D, class S> constexpr bool kConverts =
    std::is_same<Put, PutCast>::value && kShortensOrWidens<D, typename std::remove_const<S>::type>;

// ---- loops ------------------------------------------------------------------------------------------------------
template <class D, class S> __attribute__((noinline)) void convert_rows(D* dst, Offset dst_step, const S* src,
                                                                        Offset src_step, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r) convert_run(dst + r * dst_step, src + r * src_step, cols);
}

template <class D, class S, class Put> PTO_LOOP void put_rows_here(D* dst, Offset dst_step, const S* src,
                                                                   Offset src_step, int64_t rows, int64_t cols,
                                                                   Put put) {
  for (int64_t r = 0; r < rows; ++r, dst += dst_step, src += src_step) {
    if (Put::kBytes && cols >= 8) {  // for less a call costs more than the elements
      __builtin_memmove(dst, src, static_cast<size_t>(cols) * sizeof(D));
    } else {
      PTO_INDEPENDENT
      for (int64_t c = 0; c < cols; ++c) put(dst[c], src[c]);
    }
  }
}

template <class D, class S, class Put>
PTO_INLINE void put_rows(D* dst, Offset dst_step, const S* src, Offset src_step, int64_t rows, int64_t cols, Put put) {
  if constexpr (kConverts<Put, D, S>)
    convert_rows(dst, dst_step, src, src_step, rows, cols);
  else
    put_rows_here(dst, dst_step, src, src_step, rows, cols, put);
}

// Rows of exactly kCols elements, which is what a box row is: one or two vector registers.
template <int kCols, class D, class S, class Put>
PTO_LOOP void put_box_rows(D* dst, Offset dst_step, const S* src, Offset src_step, int64_t rows, Put put) {
  for (int64_t r = 0; r < rows; ++r, dst += dst_step, src += src_step) {
    if constexpr (Put::kBytes) {
      __builtin_memcpy(dst, src, kCols * sizeof(D));
    } else {
      PTO_INDEPENDENT
      for (int c = 0; c < kCols; ++c) put(dst[c], src[c]);
    }
  }
}

// Any two layouts. The square is small enough for both sides to stay in the first-level cache.
template <class DstView, class SrcView, class Put> PTO_LOOP void put_squares(DstView dst, SrcView src, Put put) {
  constexpr int kSquare = 16;
  for (int r0 = 0; r0 < dst.rows; r0 += kSquare) {
    const int r1 = r0 + kSquare < dst.rows ? r0 + kSquare : dst.rows;
    for (int c0 = 0; c0 < dst.cols; c0 += kSquare) {
      const int width = c0 + kSquare < dst.cols ? kSquare : dst.cols - c0;
      Offset dst_col[kSquare], src_col[kSquare];
      for (int c = 0; c < width; ++c) {
        dst_col[c] = dst.col.offset(c0 + c);
        src_col[c] = src.col.offset(c0 + c);
      }
      for (int r = r0; r < r1; ++r) {
        typename DstView::Element* const to = dst.base + dst.row.offset(r);
        typename SrcView::Element* const from = src.base + src.row.offset(r);
        for (int c = 0; c < width; ++c) put(to[dst_col[c]], from[src_col[c]]);
      }
    }
  }
}

// How many of the `wanted` elements from index i on lie in one run of the axis.
template <class AxisT> PTO_INLINE int run_left(const AxisT& axis, int i, int wanted) {
  if constexpr (AxisT::kRun == 0)
    return wanted;
  else {
    const int left = AxisT::kRun - (axis.first + i) % AxisT::kRun;
    return left < wanted ? left : wanted;
  }
}

// Both views are contiguous along runs of columns.
template <class DstView, class SrcView, class Put>
PTO_INLINE void put_runs(const DstView& dst, const SrcView& src, Put put) {
  constexpr int kDst = DstView::Col::kRun, kSrc = SrcView::Col::kRun;
  if constexpr (kDst == 0 && kSrc == 0 && DstView::Row::kRun == 0 && SrcView::Row::kRun == 0) {
    const Offset to = dst.row.step(), from = src.row.step();
    if (to == dst.cols && from == dst.cols)
      put_rows(dst.base, 0, src.base, 0, 1, int64_t{dst.rows} * dst.cols, put);
    else
      put_rows(dst.base, to, src.base, from, dst.rows, dst.cols, put);
  } else {
    constexpr int kChunk = kDst == 0 ? kSrc : kSrc == 0 ? kDst : kDst < kSrc ? kDst : kSrc;
    for (int c = 0; c < dst.cols;) {
      const int n = run_left(dst.col, c, run_left(src.col, c, dst.cols - c));
      for (int r = 0; r < dst.rows;) {
        const int m = run_left(dst.row, r, run_left(src.row, r, dst.rows - r));
        auto* const to = &dst.at(r, c);
        auto* const from = &src.at(r, c);
        using To = typename DstView::Element;
        using From = typename SrcView::Element;
        if (n == kChunk && !kConverts<Put, To, From>)
          put_box_rows<kChunk == 0 ? 1 : kChunk>(to, dst.row.step(), from, src.row.step(), m, put);
        else
          put_rows(to, dst.row.step(), from, src.row.step(), m, n, put);
        r += m;
      }
      c += n;
    }
  }
}

// ---- contiguous along different axes ------------------------------------------------------------------------------
// Squares as large as a 16-byte vector, transposed in registers: each step interleaves the first half of the vectors
// with the second; after log2(n) steps vector i holds element i of all.
template <class T> using Word =
    typename std::conditional<sizeof(T) == 1, uint8_t,
                              typename std::conditional<sizeof(T) == 2, uint16_t, uint32_t>::type>::type;
template <class W> struct WordVector {
  static constexpr int kCount = 16 / int(sizeof(W));
  typedef W Type __attribute__((vector_size(16)));
};
template <class V, size_t... kIndex>
PTO_INLINE void interleave(V a, V b, V& low, V& high, std::index_sequence<kIndex...>) {
  constexpr int n = int(sizeof...(kIndex));
  low = __builtin_shufflevector(a, b, (int(kIndex) % 2 == 0 ? int(kIndex) / 2 : n + int(kIndex) / 2)...);
  high =
      __builtin_shufflevector(a, b, (int(kIndex) % 2 == 0 ? n / 2 + int(kIndex) / 2 : n + n / 2 + int(kIndex) / 2)...);
}

// dst is contiguous along rows, src along columns; rows and columns are multiples of a vector, and so are the boxes.
// In an order that fills whole lines of the cache, two at a time. Of bytes only half as many rows at a time: more vectors than there
// are registers would cost more than the shorter stores; each vector then holds two columns.
template <class DstView, class SrcView> PTO_LOOP void put_transposed(const DstView& dst, const SrcView& src) {
  using W = Word<typename DstView::Element>;
  using V = typename WordVector<W>::Type;
  constexpr int kCols = WordVector<W>::kCount, n = kCols < 8 ? kCols : 8, kEach = kCols / n;
  constexpr int kLine = 128 / int(sizeof(W));
  for (int line = 0; line < dst.rows; line += kLine)
    for (int c = 0; c < dst.cols; c += kCols)
      for (int r = line; r < line + kLine && r < dst.rows; r += n) {
        V a[n], b[n];
        PTO_UNROLLED
        for (int i = 0; i < n; ++i) __builtin_memcpy(&a[i], &src.at(r + i, c), 16);
        PTO_UNROLLED
        for (int step = 1; step < n; step *= 2) {
          PTO_UNROLLED
          for (int i = 0; i < n / 2; ++i)
            interleave(a[i], a[i + n / 2], b[2 * i], b[2 * i + 1], std::make_index_sequence<kCols>());
          PTO_UNROLLED
          for (int i = 0; i < n; ++i) a[i] = b[i];
        }
        PTO_UNROLLED
        for (int i = 0; i < kCols; ++i)
          __builtin_memcpy(&dst.at(r, c + i), reinterpret_cast<const W*>(&a[i / kEach]) + i % kEach * n, n * sizeof(W));
      }
}

template <class AxisT> PTO_INLINE bool starts_at_multiple(const AxisT& axis, int n) {
  if constexpr (AxisT::kRun == 0)
    return true;
  else
    return AxisT::kRun % n == 0 && axis.first % n == 0;
}

// dst is contiguous along rows, src along columns.
template <class DstView, class SrcView, class Put>
PTO_INLINE void put_across_here(const DstView& dst, const SrcView& src, Put put) {
  if constexpr (Put::kBytes && sizeof(typename DstView::Element) <= 4) {
    constexpr int n = WordVector<Word<typename DstView::Element>>::kCount;
    if (starts_at_multiple(dst.row, n) && starts_at_multiple(src.col, n) && dst.rows >= n && dst.cols >= n) {
      const int rows = dst.rows / n * n, cols = dst.cols / n * n;
      put_transposed(window(dst, 0, 0, rows, cols), window(src, 0, 0, rows, cols));
      if (cols < dst.cols)
        put_squares(window(dst, 0, cols, dst.rows, dst.cols - cols), window(src, 0, cols, dst.rows, dst.cols - cols),
                    put);
      if (rows < dst.rows)
        put_squares(window(dst, rows, 0, dst.rows - rows, cols), window(src, rows, 0, dst.rows - rows, cols), put);
      return;
    }
  }
  put_squares(dst, src, put);
}

// Squares of bytes take as many steps as a vector has bytes: longer vectors do several squares at once.
template <class DstView, class SrcView, class Put> constexpr bool kTransposedByTable =
    Put::kBytes && sizeof(typename DstView::Element) == 1 && DstView::Row::kRun == 0 && DstView::Col::kRun == 0 &&
    SrcView::Row::kRun == 0 && SrcView::Col::kRun == 0;

template <class DstView, class SrcView, class Put>
PTO_INLINE void put_across(const DstView& dst, const SrcView& src, Put put) {
  constexpr bool kByTable = kTransposedByTable<DstView, SrcView, Put>;
  if constexpr (kByTable) {
    const SimplerTileKernels* const table = sim_state.hooks.kernels;
    if (kHosted || table != nullptr)
      return table->transpose_bytes(reinterpret_cast<uint8_t*>(dst.base), dst.col.step(),
                                    reinterpret_cast<const uint8_t*>(src.base), src.row.step(), dst.rows, dst.cols);
  }
  if constexpr (!kByTable || !kHosted) put_across_here(dst, src, put);
}

template <class DstView, class SrcView, class Put>
PTO_INLINE void transfer(const DstView& dst, const SrcView& src, Put put) {
  if (dst.rows <= 0 || dst.cols <= 0) return;
  if constexpr (DstView::Col::kUnit && SrcView::Col::kUnit)
    put_runs(dst, src, put);
  else if constexpr (DstView::Row::kUnit && SrcView::Row::kUnit)
    put_runs(transposed(dst), transposed(src), put);
  else if constexpr (DstView::Row::kUnit && SrcView::Col::kUnit)
    put_across(dst, src, put);
  else if constexpr (DstView::Col::kUnit && SrcView::Row::kUnit)
    put_across(transposed(dst), transposed(src), put);
  else
    put_squares(dst, src, put);
}

// Fills a view with one value.
template <class T> PTO_LOOP void fill_run(T* dst, int64_t count, T value) {
  for (int64_t i = 0; i < count; ++i) dst[i] = value;
}
template <class DstView> PTO_INLINE void fill(const DstView& dst, typename DstView::Element value) {
  if constexpr (DstView::Row::kUnit && !DstView::Col::kUnit)
    return fill(transposed(dst), value);
  else if constexpr (DstView::Col::kUnit) {
    for (int c = 0, n = 0; c < dst.cols; c += n) {
      n = run_left(dst.col, c, dst.cols - c);
      for (int r = 0, m = 0; r < dst.rows; r += m) {
        m = dst.row.step() == n ? run_left(dst.row, r, dst.rows - r) : 1;  // rows that follow each other: one run
        fill_run(&dst.at(r, c), int64_t{n} * m, value);
      }
    }
  } else {
    for (int r = 0; r < dst.rows; ++r)
      for (int c = 0; c < dst.cols; ++c) dst.at(r, c) = value;
  }
}

// The value behind a PadValue.
template <class T> constexpr T pad_value(PadValue pad) {
  if (pad == PadValue::Min) return lowest_value<T>();
  if (pad == PadValue::Max) return highest_value<T>();
  const uint32_t bits = static_cast<uint64_t>(pad) >= (uint64_t{1} << 32) ? static_cast<uint32_t>(pad) : 0u;
  if constexpr (sizeof(T) == 1)
    return bit_cast<T>(static_cast<uint8_t>(bits));
  else if constexpr (sizeof(T) == 2)
    return bit_cast<T>(static_cast<uint16_t>(bits));
  else if constexpr (sizeof(T) == 4)
    return bit_cast<T>(bits);
  else
    return bit_cast<T>(static_cast<uint64_t>(bits));
}

template <class GlobalT> PTO_INLINE void need_memory(const GlobalT& global, const char* instruction) {
  if (kChecks && global.data() == nullptr) fail("%s: the global tensor has a null address", instruction);
}
// A transfer of rows x cols stays inside the matrix picture of `global`, as its shape says.
template <class TileT, class GlobalT>
PTO_INLINE void need_extent(const GlobalT& global, int rows, int cols, const char* instruction) {
  if (!kChecks || rows <= 0 || cols <= 0) return;
  need_memory(global, instruction);
  const Extents held = extents_of(global);
  if (rows <= held.rows && cols <= held.cols) return;
  fail(
      "%s: %d x %d elements of a %s tile of %d x %d, but the global tensor has %lld rows of %lld (its shape is "
      "%lld, %lld, %lld, %lld, %lld, layout %s)",
      instruction, rows, cols, name_of(TileT::Loc), TileT::Rows, TileT::Cols, (long long)held.rows,
      (long long)held.cols, (long long)global.GetShape(0), (long long)global.GetShape(1), (long long)global.GetShape(2),
      (long long)global.GetShape(3), (long long)global.GetShape(4), name_of(GlobalT::layout));
}

// The scale of a quantising form: a float, or an integer whose low 32 bits are one.
template <class V> PTO_INLINE float scale_of(V value) {
  if constexpr (std::is_floating_point<V>::value)
    return static_cast<float>(value);
  else
    return bit_cast<float>(static_cast<uint32_t>(value));
}

template <class GlobalT, class TileT, class Put>
PTO_INLINE RecordEvent store_tile(GlobalT& dst, TileT& src, Put put, const char* instruction) {
  static_assert(TileT::Loc == TileType::Vec || TileT::Loc == TileType::Mat || TileT::Loc == TileType::Acc,
                "TSTORE takes tiles in vector or matrix memory and accumulators (TileType::Vec, Mat, Acc)");
  const auto from = source(src, instruction);
  need_extent<TileT>(dst, from.rows, from.cols, instruction);
  for_each_piece(dst, from.rows, from.cols, [&](const auto& piece, int r, int c) {
    transfer(piece, window(from, r, c, piece.rows, piece.cols), put);
  });
  order_memory();
  return {};
}

}  // namespace tile_detail

// ---- global memory ----------------------------------------------------------------------------------------------

// Loads the valid region. The rest of the tile becomes its pad value, or zero if it has none, so that results do not
// depend on what the memory held before.
template <class TileT, class GlobalT> PTO_INLINE RecordEvent TLOAD(TileT& dst, const GlobalT& src) {
  using D = typename TileT::DType;
  using S = typename GlobalT::RawDType;
  static_assert(TileT::Loc == TileType::Vec || TileT::Loc == TileType::Mat,
                "TLOAD fills tiles in vector or matrix memory (TileType::Vec, TileType::Mat); TMOV and TEXTRACT bring "
                "them on to the operands of a product");
  static_assert(sizeof(D) == sizeof(S), "TLOAD: tile and global memory have elements of one size");
  const auto to = tile_detail::view(dst, "TLOAD");
  if (to.rows < TileT::Rows || to.cols < TileT::Cols)
    tile_detail::fill_run(to.base, TileT::Numel, tile_detail::pad_value<tile_detail::Stored<D>>(TileT::PadVal));
  tile_detail::need_extent<TileT>(src, to.rows, to.cols, "TLOAD");
  tile_detail::for_each_piece(src, to.rows, to.cols, [&](const auto& piece, int r, int c) {
    tile_detail::transfer(tile_detail::window(to, r, c, piece.rows, piece.cols), piece, tile_detail::PutSame());
  });
  tile_detail::order_memory();
  return tile_detail::wrote(dst, tile_detail::view(dst, TileT::Rows, TileT::Cols, "TLOAD"));
}

// Stores the valid region, converted to the type of the memory. Atomic forms combine with what is there.
template <class TileT, class GlobalT, AtomicType kAtomic = AtomicType::AtomicNone,
          ReluPreMode kRelu = ReluPreMode::NoRelu>
PTO_INLINE RecordEvent TSTORE(const GlobalT& dst, TileT& src) {
  using namespace tile_detail;
  constexpr bool kSame = std::is_same<typename TileT::DType, typename GlobalT::RawDType>::value;
  using Plain = typename std::conditional<kSame, PutSame, PutCast>::type;
  using Put = typename std::conditional<kAtomic == AtomicType::AtomicNone, Plain, PutAtomic<kAtomic>>::type;
  if constexpr (kRelu == ReluPreMode::NormalRelu)
    return store_tile(dst, src, PutRelu<Put>{}, "TSTORE");
  else
    return store_tile(dst, src, Put{}, "TSTORE");
}
// Stores accumulators times a scale.
template <class TileT, class GlobalT, AtomicType kAtomic = AtomicType::AtomicNone,
          ReluPreMode kRelu = ReluPreMode::NoRelu, class Scale,
          typename std::enable_if<std::is_arithmetic<Scale>::value, int>::type = 0>
PTO_INLINE RecordEvent TSTORE(const GlobalT& dst, TileT& src, Scale scale) {
  using namespace tile_detail;
  static_assert(kAtomic == AtomicType::AtomicNone, "TSTORE: a quantising store cannot be atomic");
  const PutScaled put = {scale_of(scale)};
  if constexpr (kRelu == ReluPreMode::NormalRelu)
    return store_tile(dst, src, PutRelu<PutScaled>{put}, "TSTORE");
  else
    return store_tile(dst, src, put, "TSTORE");
}

// ---- between tiles ----------------------------------------------------------------------------------------------

namespace tile_detail {
// Ways between the memories of a core: into matrix memory from everywhere, to operands of products only from there,
// out of accumulators to vector and matrix memory.
template <class Dst, class Src> constexpr void check_way() {
  constexpr TileType kTo = Dst::Loc, kFrom = Src::Loc;
  static_assert(kFrom == TileType::Vec || kFrom == TileType::Mat || kFrom == TileType::Acc,
                "tiles are moved out of vector memory, matrix memory and accumulators only (TileType::Vec, Mat, Acc)");
  static_assert(kTo != TileType::Acc, "nothing is moved into an accumulator; only products write there");
  static_assert(kTo == TileType::Vec || kTo == TileType::Mat || kFrom == TileType::Mat,
                "operands, biases and scales of products come out of matrix memory (TileType::Mat)");
}

template <class D, class S, ReluPreMode kRelu> using PutBetween =
    typename std::conditional<kRelu == ReluPreMode::NormalRelu, PutRelu<PutCast>,
                              typename std::conditional<std::is_same<D, S>::value, PutSame, PutCast>::type>::type;

// dst(r, c) = src(r + row, c + col) for the valid region of dst.
template <class Dst, class Src, class Put>
PTO_INLINE RecordEvent extract(Dst& dst, Src& src, int row, int col, Put put, const char* instruction) {
  check_way<Dst, Src>();
  const auto to = view(dst, instruction);
  if (kChecks && (row < 0 || col < 0 || row + to.rows > Src::Rows || col + to.cols > Src::Cols))
    fail("%s: %d x %d elements from (%d, %d) reach beyond a tile of %d x %d", instruction, to.rows, to.cols, row, col,
         Src::Rows, Src::Cols);
  need_written(src, row, col, to.rows, to.cols, instruction);
  transfer(to, window(view(src, 0, 0, instruction), row, col, to.rows, to.cols), put);
  order_memory();
  return wrote(dst, to);
}
}  // namespace tile_detail

// Copies the valid region, between memories, layouts and element types.
template <class Dst, class Src, ReluPreMode kRelu = ReluPreMode::NoRelu>
PTO_INLINE RecordEvent TMOV(Dst& dst, Src& src) {
  using Put = tile_detail::PutBetween<typename Dst::DType, typename Src::DType, kRelu>;
  constexpr bool kSameStorage = std::is_same<tile_detail::TileView<Dst>, tile_detail::TileView<Src>>::value &&
                                Dst::Rows == Src::Rows && Dst::Cols == Src::Cols && kRelu == ReluPreMode::NoRelu;
  if constexpr (kSameStorage) {
    const auto to = tile_detail::view(dst, "TMOV");
    if (to.rows == Dst::Rows && to.cols == Dst::Cols) {  // element by element the same order: one run
      tile_detail::put_rows(to.base, 0, tile_detail::source(src, "TMOV").base, 0, 1, Dst::Numel, Put());
      tile_detail::order_memory();
      return tile_detail::wrote(dst, to);
    }
  }
  return tile_detail::extract(dst, src, 0, 0, Put(), "TMOV");
}
// Accumulators times a scale.
template <class Dst, class Src, ReluPreMode kRelu = ReluPreMode::NoRelu, class Scale,
          typename std::enable_if<std::is_arithmetic<Scale>::value, int>::type = 0>
PTO_INLINE RecordEvent TMOV(Dst& dst, Src& src, Scale scale) {
  const tile_detail::PutScaled put = {tile_detail::scale_of(scale)};
  if constexpr (kRelu == ReluPreMode::NormalRelu)
    return tile_detail::extract(dst, src, 0, 0, tile_detail::PutRelu<tile_detail::PutScaled>{put}, "TMOV");
  else
    return tile_detail::extract(dst, src, 0, 0, put, "TMOV");
}

template <class Dst, class Src, ReluPreMode kRelu = ReluPreMode::NoRelu>
PTO_INLINE RecordEvent TEXTRACT(Dst& dst, Src& src, int row = 0, int col = 0) {
  return tile_detail::extract(dst, src, row, col,
                              tile_detail::PutBetween<typename Dst::DType, typename Src::DType, kRelu>(), "TEXTRACT");
}

// dst(r + row, c + col) = src(r, c) for the valid region of src.
template <class Dst, class Src, ReluPreMode kRelu = ReluPreMode::NoRelu>
PTO_INLINE RecordEvent TINSERT(Dst& dst, Src& src, int row = 0, int col = 0) {
  tile_detail::check_way<Dst, Src>();
  const auto from = tile_detail::source(src, "TINSERT");
  if (tile_detail::kChecks && (row < 0 || col < 0 || row + from.rows > Dst::Rows || col + from.cols > Dst::Cols))
    tile_detail::fail("TINSERT: %d x %d elements at (%d, %d) reach beyond a tile of %d x %d", from.rows, from.cols, row,
                      col, Dst::Rows, Dst::Cols);
  const auto to = tile_detail::window(tile_detail::view(dst, 0, 0, "TINSERT"), row, col, from.rows, from.cols);
  tile_detail::transfer(to, from, tile_detail::PutBetween<typename Dst::DType, typename Src::DType, kRelu>());
  tile_detail::order_memory();
  return tile_detail::wrote(dst, to);
}

}  // namespace pto
