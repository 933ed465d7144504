// Sorting of (score, index) pairs, descending by score, equal scores in their old order.
//
// What      A pair is 8 bytes: float score and index bits, or half score, two zero bytes and index bits. TSORT32 makes
//           sorted blocks of up to 32 pairs, TMRGSORT merges sorted blocks.
#pragma once

#include "copy.hpp"

namespace pto {

// Pairs taken from each list by a merge.
struct MrgSortExecutedNumList {
  uint16_t mrgSortList0, mrgSortList1, mrgSortList2, mrgSortList3;
};

namespace tile_detail {

template <class T> constexpr int kPairElements = 8 / int(sizeof(T));

template <class T> constexpr void need_scores() {
  static_assert(std::is_same<T, float>::value || std::is_same<T, ::half>::value, "scores are float or half");
}

template <class T> PTO_INLINE float score_of(const T* pair) { return load(*reinterpret_cast<const Stored<T>*>(pair)); }

// One list of a merge: `count` pairs from `next` on.
template <class T> struct SortedList {
  const T* next;
  int64_t count, taken;
};

// Merges until `capacity` pairs are written, all lists are empty or, if asked, one is. Returns the number of pairs.
template <class T>
inline int64_t merge_lists(T* dst, int64_t capacity, SortedList<T>* lists, int list_count, bool stop_when_exhausted) {
  int64_t written = 0;
  while (written < capacity) {
    int best = -1;
    for (int i = 0; i < list_count; ++i) {
      if (lists[i].taken == lists[i].count) {
        if (stop_when_exhausted) return written;
        continue;
      }
      if (best < 0 || score_of(lists[best].next) < score_of(lists[i].next)) best = i;
    }
    if (best < 0) return written;
    __builtin_memcpy(dst, lists[best].next, 8);
    dst += kPairElements<T>;
    lists[best].next += kPairElements<T>;
    ++lists[best].taken;
    ++written;
  }
  return written;
}

template <class TileT> PTO_INLINE SortedList<typename TileT::DType> list_of(TileT& tile) {
  using T = typename TileT::DType;
  static_assert(TileT::isRowMajor && !TileT::isBoxedLayout, "sorted lists are row-major tiles");
  view(tile, "TMRGSORT");
  return {TilePlace::of(tile), tile.GetValidCol() / kPairElements<T>, 0};
}

template <bool kExhausted, class Dst, class... Lists>
PTO_INLINE RecordEvent merge_tiles(Dst& dst, MrgSortExecutedNumList& executed, Lists&... tiles) {
  using T = typename Dst::DType;
  need_scores<T>();
  static_assert((std::is_same<T, typename Lists::DType>::value && ...), "all lists have one element type");
  SortedList<T> lists[4] = {list_of(tiles)...};
  const auto to = view(dst, 1, dst.GetValidCol(), "TMRGSORT");
  merge_lists(TilePlace::of(dst), dst.GetValidCol() / kPairElements<T>, lists, int(sizeof...(Lists)), kExhausted);
  const SortedList<T>* list = lists;  // read as far as something was taken
  (need_written(tiles, 0, 0, 1, int((list++)->taken) * kPairElements<T>, "TMRGSORT"), ...);
  executed = {static_cast<uint16_t>(lists[0].taken), static_cast<uint16_t>(lists[1].taken),
              static_cast<uint16_t>(lists[2].taken), static_cast<uint16_t>(lists[3].taken)};
  order_memory();
  return wrote(dst, to);
}

}  // namespace tile_detail

// In each row, each 32 columns: the scores of src with their indices, sorted, as pairs.
template <class Dst, class Src, class Index, class... Scratch>
PTO_INLINE RecordEvent TSORT32(Dst& dst, Src& src, Index& index, Scratch&...) {
  static_assert(tile_detail::kVectorTiles<Dst, Src, Index>,
                "TSORT32 takes tiles in vector memory (TileType::Vec); TMOV brings others there");
  using T = typename Src::DType;
  constexpr int kPair = tile_detail::kPairElements<T>;
  tile_detail::need_scores<T>();
  static_assert(std::is_same<typename Dst::DType, T>::value, "TSORT32: dst has the element type of the scores");
  static_assert(sizeof(typename Index::DType) == 4, "TSORT32: indices have 32 bits");
  const auto scores = tile_detail::source(src, "TSORT32");
  const auto indices = tile_detail::source(index, index.GetValidRow() == 1 ? 1 : scores.rows, scores.cols, "TSORT32");
  const auto pairs = tile_detail::view(dst, scores.rows, scores.cols * kPair, "TSORT32");
  static_assert(Dst::isRowMajor && !Dst::isBoxedLayout, "TSORT32: dst is a row-major tile");
  for (int r = 0; r < scores.rows; ++r)
    for (int c0 = 0; c0 < scores.cols; c0 += 32) {
      const int n = scores.cols - c0 < 32 ? scores.cols - c0 : 32;
      int order[32];
      for (int i = 0; i < n; ++i) {  // insertion: for 32 elements as good as anything, and stable
        const float score = tile_detail::load(scores.at(r, c0 + i));
        int at = i;
        for (; at > 0 && tile_detail::load(scores.at(r, c0 + order[at - 1])) < score; --at) order[at] = order[at - 1];
        order[at] = i;
      }
      for (int i = 0; i < n; ++i) {
        unsigned char pair[8] = {};
        const auto score = scores.at(r, c0 + order[i]);
        const auto bits = indices.at(indices.rows == 1 ? 0 : r, c0 + order[i]);
        __builtin_memcpy(pair, &score, sizeof score);
        __builtin_memcpy(pair + 4, &bits, 4);
        __builtin_memcpy(&pairs.at(r, (c0 + i) * kPair), pair, 8);
      }
    }
  tile_detail::order_memory();
  return tile_detail::wrote(dst, pairs);
}

// In each row: merges every four neighbouring sorted blocks of block_length elements (not pairs) into one. What is left
// behind the last four complete blocks is not written.
template <class Dst, class Src> PTO_INLINE RecordEvent TMRGSORT(Dst& dst, Src& src, uint32_t block_length) {
  using T = typename Src::DType;
  constexpr uint32_t kPair = tile_detail::kPairElements<T>;
  tile_detail::need_scores<T>();
  static_assert(std::is_same<typename Dst::DType, T>::value, "TMRGSORT: both tiles have one element type");
  static_assert(Dst::isRowMajor && Src::isRowMajor && !Dst::isBoxedLayout && !Src::isBoxedLayout,
                "TMRGSORT: lists are row-major tiles");
  const auto from = tile_detail::view(src, "TMRGSORT");
  const auto to = tile_detail::view(dst, from.rows, from.cols, "TMRGSORT");
  if (block_length == 0 || block_length % kPair != 0)
    tile_detail::fail("TMRGSORT: block length %u; it counts elements, %u for each pair", block_length, kPair);
  const int64_t group = int64_t{4} * block_length;
  const int merged = static_cast<int>(from.cols / group * group);
  tile_detail::need_written(src, 0, 0, from.rows, merged, "TMRGSORT");
  for (int r = 0; r < from.rows; ++r)
    for (int64_t c = 0; c + group <= from.cols; c += group) {
      tile_detail::SortedList<T> lists[4];
      const T* const first = tile_detail::TilePlace::of(src) + tile_detail::Offset{r} * Src::Cols + c;
      for (int i = 0; i < 4; ++i) lists[i] = {first + int64_t{i} * block_length, block_length / kPair, 0};
      tile_detail::merge_lists(tile_detail::TilePlace::of(dst) + tile_detail::Offset{r} * Dst::Cols + c, group / kPair,
                               lists, 4, false);
    }
  tile_detail::order_memory();
  return tile_detail::wrote(dst, tile_detail::window(to, 0, 0, from.rows, merged));
}

// Merges two to four lists (one row each) into dst, as far as it reaches. With kExhausted the merge ends as soon as one
// list is used up. `executed` tells how many pairs each list gave.
template <class Dst, class Scratch, class A, class B, bool kExhausted = false>
PTO_INLINE RecordEvent TMRGSORT(Dst& dst, MrgSortExecutedNumList& executed, Scratch&, A& a, B& b) {
  return tile_detail::merge_tiles<kExhausted>(dst, executed, a, b);
}
template <class Dst, class Scratch, class A, class B, class C, bool kExhausted = false>
PTO_INLINE RecordEvent TMRGSORT(Dst& dst, MrgSortExecutedNumList& executed, Scratch&, A& a, B& b, C& c) {
  return tile_detail::merge_tiles<kExhausted>(dst, executed, a, b, c);
}
template <class Dst, class Scratch, class A, class B, class C, class D, bool kExhausted = false>
PTO_INLINE RecordEvent TMRGSORT(Dst& dst, MrgSortExecutedNumList& executed, Scratch&, A& a, B& b, C& c, D& d) {
  return tile_detail::merge_tiles<kExhausted>(dst, executed, a, b, c, d);
}

}  // namespace pto
