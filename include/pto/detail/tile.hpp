// Tile: a two-dimensional operand in one of a core's memories, and TASSIGN / TRESHAPE, which say where it lies.
//
// What      Shape, layout and padding are part of the type; the valid region may be dynamic. A tile is an address and
//           two numbers: it owns nothing. Tiles at equal or overlapping addresses alias, on purpose.
// Lifetime  The address belongs to the simulated core of the current kernel call; tiles do not outlive the call.
#pragma once

#include "../common/constants.hpp"
#include "written.hpp"

namespace pto {
namespace tile_detail {

constexpr uint32_t memory_of(TileType location) {
  switch (location) {
    case TileType::Mat: return SIMPLER_TILE_MEMORY_L1;
    case TileType::Left: return SIMPLER_TILE_MEMORY_L0A;
    case TileType::Right: return SIMPLER_TILE_MEMORY_L0B;
    case TileType::Acc: return SIMPLER_TILE_MEMORY_L0C;
    case TileType::ScaleLeft: return SIMPLER_TILE_MEMORY_SCALE_LEFT;
    case TileType::ScaleRight: return SIMPLER_TILE_MEMORY_SCALE_RIGHT;
    default: return SIMPLER_TILE_MEMORY_UB;
  }
}
constexpr const char* name_of(TileType location) {
  switch (location) {
    case TileType::Vec: return "Vec";
    case TileType::Mat: return "Mat";
    case TileType::Left: return "Left";
    case TileType::Right: return "Right";
    case TileType::Acc: return "Acc";
    case TileType::Bias: return "Bias";
    case TileType::Scaling: return "Scaling";
    case TileType::ScaleLeft: return "ScaleLeft";
    default: return "ScaleRight";
  }
}

// A tile's type, for the simulator's books of written elements.
template <class TileT> constexpr SimplerTileKind kind_of(SimplerTileAccess access, int element_bytes,
                                                         SimplerTileAxis row, SimplerTileAxis col) {
  return {memory_of(TileT::Loc), access, name_of(TileT::Loc), TileT::Rows, TileT::Cols, element_bytes, row, col};
}
// Its elements in the order of their storage. Not a member: that would be one object for all kernels in the process, and
// none of them could be unloaded.
template <class TileT> constexpr SimplerTileKind kPlacesOf =
    kind_of<TileT>(SIMPLER_TILE_ACCESS_PLACES, int(sizeof(typename TileT::DType)), kUnitAxis, kUnitAxis);

// Rows and columns of an inner box.
constexpr int box_rows(SLayout order, int box_bytes, int element_bytes) {
  if (order == SLayout::NoneBox) return 1;
  if (box_bytes == TileConfig::fractalCSize) return 16;
  if (box_bytes == TileConfig::fractalMxSize) return order == SLayout::RowMajor ? 16 : 2;
  return order == SLayout::RowMajor ? 16 : C0_SIZE_BYTE / element_bytes;
}
constexpr int box_cols(SLayout order, int box_bytes, int element_bytes) {
  if (order == SLayout::NoneBox) return 1;
  if (box_bytes == TileConfig::fractalCSize) return 16;
  if (box_bytes == TileConfig::fractalMxSize) return order == SLayout::RowMajor ? 2 : 16;
  return order == SLayout::RowMajor ? C0_SIZE_BYTE / element_bytes : 16;
}

// The axes of a tile's storage. Boxes in column-major order: a column of boxes takes Rows * box columns elements; in
// row-major order a row of boxes takes Cols * box rows. Right operands are kept row-major instead: products read them
// along the rows, and their boxes are visible to no instruction.
template <class Tile> struct Storage {
  static constexpr Offset kRows = Tile::Rows, kCols = Tile::Cols, kIr = Tile::InnerRows, kIc = Tile::InnerCols;
  static constexpr bool kPlain = !Tile::isBoxedLayout || Tile::Loc == TileType::Right;
  static constexpr bool kOuterRows = Tile::BFractal == BLayout::RowMajor;  // rows of boxes follow each other
  static constexpr bool kInnerRows = Tile::SFractal == SLayout::RowMajor;
  static constexpr Offset kRowStep = kInnerRows ? kIc : 1, kColStep = kInnerRows ? 1 : kIr;
  static constexpr Offset kRowBlock = kOuterRows ? kCols * kIr : kIr * kIc;
  static constexpr Offset kColBlock = kOuterRows ? kIr * kIc : kRows * kIc;
  static constexpr bool kColumnMajor = !Tile::isBoxedLayout && Tile::BFractal == BLayout::ColMajor;

  using PlainRow = FixedAxis<kColumnMajor ? 1 : kCols>;
  using PlainCol = FixedAxis<kColumnMajor ? kRows : 1>;
  using Row = typename std::conditional<kPlain, PlainRow, Axis<int(kIr), kRowStep, kRowBlock>>::type;
  using Col = typename std::conditional<kPlain, PlainCol, Axis<int(kIc), kColStep, kColBlock>>::type;
};

// Where a tile lies, for the library itself: data() is for kernels.
struct TilePlace {
  template <class TileT> static PTO_INLINE auto*& of(TileT& tile) { return tile.data_; }
  template <class TileT> static PTO_INLINE auto* of(const TileT& tile) { return tile.data_; }
};

// The valid extent of one dimension: part of the type, or a member.
template <int kExtent, int kCapacity> struct Extent {
  static_assert(kExtent >= 0 && kExtent <= kCapacity, "the valid region lies inside the tile");
  static constexpr int get() { return kExtent; }
  static void set(int64_t value, const char* what) {
    if (kChecks && value != kExtent)
      fail("tile: valid %s set to %lld, but the type fixes it at %d; declare it DYNAMIC", what, (long long)value,
           kExtent);
  }
};
template <int kCapacity> struct Extent<DYNAMIC, kCapacity> {
  int value = kCapacity;
  int get() const { return value; }
  void set(int64_t wanted, const char* what) {
    if (kChecks && (wanted < 0 || wanted > kCapacity))
      fail("tile: %lld valid %s, but the tile holds 0 to %d", (long long)wanted, what, kCapacity);
    value = static_cast<int>(wanted);
  }
};

}  // namespace tile_detail

template <TileType kLoc, class Element, int kRows, int kCols, BLayout kOuter = BLayout::RowMajor,
          int kValidRows = kRows, int kValidCols = kCols, SLayout kInner = SLayout::NoneBox,
          int kBoxBytes = TileConfig::fractalABSize, auto kPad = PadValue::Null,
          CompactMode kCompact = CompactMode::Null>
struct Tile {
  using DType = Element;
  using TileDType = Element*;

  static constexpr TileType Loc = kLoc;
  static constexpr int Rows = kRows, Cols = kCols, Numel = kRows * kCols;
  static constexpr int ValidRow = kValidRows, ValidCol = kValidCols;
  static constexpr BLayout BFractal = kOuter;
  static constexpr SLayout SFractal = kInner;
  static constexpr bool isRowMajor = kOuter == BLayout::RowMajor;
  static constexpr bool isBoxedLayout = kInner != SLayout::NoneBox;
  static constexpr bool isInnerRowMajor = kInner == SLayout::RowMajor;
  static constexpr bool isInnerColMajor = kInner == SLayout::ColMajor;
  static constexpr int SFractalSize = kBoxBytes;
  static constexpr int InnerRows = tile_detail::box_rows(kInner, kBoxBytes, sizeof(Element));
  static constexpr int InnerCols = tile_detail::box_cols(kInner, kBoxBytes, sizeof(Element));
  static constexpr int InnerNumel = InnerRows * InnerCols;
  static constexpr int RowStride = isRowMajor ? kCols : 1;
  static constexpr int ColStride = isRowMajor ? 1 : kRows;
  static constexpr PadValue PadVal = static_cast<PadValue>(kPad);
  static constexpr CompactMode Compact = kCompact;

  static_assert(kRows > 0 && kCols > 0, "a tile has at least one row and one column");
  static_assert(isBoxedLayout || (isRowMajor ? kCols : kRows) * sizeof(Element) % TileConfig::alignedSize == 0,
                "a row (row-major) or column (column-major) of an unboxed tile is a multiple of 32 bytes");
  static_assert(!isBoxedLayout || kRows % InnerRows == 0 || (kLoc == TileType::Vec || kRows == 1),
                "the rows of a boxed tile are a multiple of its box rows");
  static_assert(!isBoxedLayout || kCols % InnerCols == 0,
                "the columns of a boxed tile are a multiple of its box columns");

  Tile() = default;
  // Both extents dynamic.
  template <class R, class C, int kV = kValidRows, int kW = kValidCols,
            class = typename std::enable_if<kV == DYNAMIC && kW == DYNAMIC && std::is_convertible<R, int64_t>::value &&
                                            std::is_convertible<C, int64_t>::value>::type>
  Tile(R rows, C cols) {
    SetValidShape(rows, cols);
  }
  // Exactly one extent dynamic.
  template <class N, int kV = kValidRows, int kW = kValidCols,
            class = typename std::enable_if<(kV == DYNAMIC) != (kW == DYNAMIC) &&
                                            std::is_convertible<N, int64_t>::value>::type>
  explicit Tile(N extent) {
    if constexpr (kV == DYNAMIC)
      SetValidRow(extent);
    else
      SetValidCol(extent);
  }

  int GetValidRow() const { return valid_rows_.get(); }
  int GetValidCol() const { return valid_cols_.get(); }
  template <class N> void SetValidRow(N rows) { valid_rows_.set(static_cast<int64_t>(rows), "rows"); }
  template <class N> void SetValidCol(N cols) { valid_cols_.set(static_cast<int64_t>(cols), "columns"); }
  template <class R, class C> void SetValidShape(R rows, C cols) {
    SetValidRow(rows);
    SetValidCol(cols);
  }

  // Elements by their place in storage.
  template <class N> Element GetValue(N place) const {
    const Element* const at = element(static_cast<int64_t>(place));
    if (tile_detail::watches_memory())
      tile_detail::sim_state.hooks.tile_read(&tile_detail::kPlacesOf<Tile>, data_, 0, static_cast<int>(place), 1, 1,
                                             "GetValue");
    return *at;
  }
  template <class N, class V> void SetValue(N place, V value) {
    Element* const at = element(static_cast<int64_t>(place));
    *at = static_cast<Element>(value);
    wrote_run(static_cast<int>(place), 1);
    tile_detail::order_memory();
  }

  // Null until TASSIGN, TRESHAPE or TPOP has given the tile a place. What is written through the pointer is not seen by
  // the checks: from here on the whole tile counts as written.
  Element*& data() {
    handed_out();
    return data_;
  }
  Element* data() const {
    handed_out();
    return data_;
  }

 private:
  friend struct tile_detail::TilePlace;

  void wrote_run(int place, int count) const {
    if (tile_detail::watches_memory())
      tile_detail::sim_state.hooks.tile_written(&tile_detail::kPlacesOf<Tile>, data_, 0, place, 1, count);
  }
  void handed_out() const {
    if (data_ != nullptr) wrote_run(0, Numel);
  }
  Element* element(int64_t place) const {
    if (tile_detail::kChecks && (data_ == nullptr || place < 0 || place >= Numel))
      tile_detail::fail("tile: element %lld of a %s tile of %d x %d%s", (long long)place, tile_detail::name_of(Loc),
                        Rows, Cols, data_ == nullptr ? " that has no address; call TASSIGN first" : "");
    tile_detail::order_memory();
    return data_ + place;
  }

  Element* data_ = nullptr;
  tile_detail::Extent<kValidRows, kRows> valid_rows_;
  tile_detail::Extent<kValidCols, kCols> valid_cols_;
};

// Operands of matrix products, and variants that say that their valid part is stored compactly (no difference here).
template <class T, int R, int C, int VR = R, int VC = C> using TileLeft =
    Tile<TileType::Left, T, R, C, BLayout::ColMajor, VR, VC, SLayout::RowMajor, TileConfig::fractalABSize>;
template <class T, int R, int C, int VR = R, int VC = C> using TileRight =
    Tile<TileType::Right, T, R, C, BLayout::RowMajor, VR, VC, SLayout::ColMajor, TileConfig::fractalABSize>;
template <class T, int R, int C, int VR = R, int VC = C> using TileAcc =
    Tile<TileType::Acc, T, R, C, BLayout::ColMajor, VR, VC, SLayout::RowMajor, TileConfig::fractalCSize>;
template <class T, int R, int C, int VR = R, int VC = C> using TileLeftCompact =
    Tile<TileType::Left, T, R, C, BLayout::ColMajor, VR, VC, SLayout::RowMajor, TileConfig::fractalABSize,
         PadValue::Null, CompactMode::Normal>;
template <class T, int R, int C, int VR = R, int VC = C> using TileRightCompact =
    Tile<TileType::Right, T, R, C, BLayout::RowMajor, VR, VC, SLayout::ColMajor, TileConfig::fractalABSize,
         PadValue::Null, CompactMode::Normal>;
template <class T, int R, int C, int VR = R, int VC = C> using TileAccCompact =
    Tile<TileType::Acc, T, R, C, BLayout::ColMajor, VR, VC, SLayout::RowMajor, TileConfig::fractalCSize, PadValue::Null,
         CompactMode::Normal>;
// Block scales: one per 32 elements along the shared dimension.
template <class T, int R, int C, int VR = R, int VC = C> using TileLeftScale =
    Tile<TileType::ScaleLeft, T, R, C, BLayout::RowMajor, VR, VC, SLayout::RowMajor, TileConfig::fractalMxSize>;
template <class T, int R, int C, int VR = R, int VC = C> using TileRightScale =
    Tile<TileType::ScaleRight, T, R, C, BLayout::ColMajor, VR, VC, SLayout::ColMajor, TileConfig::fractalMxSize>;

namespace tile_detail {

template <class T> struct IsTile : std::false_type {};
template <TileType L, class T, int R, int C, BLayout B, int VR, int VC, SLayout S, int F, auto P, CompactMode M>
struct IsTile<Tile<L, T, R, C, B, VR, VC, S, F, P, M>> : std::true_type {};
template <class T> constexpr bool kIsTile = IsTile<typename std::remove_cv<T>::type>::value;
template <class T> using IfTile = typename std::enable_if<kIsTile<T>, int>::type;

// What vector instructions work on, and the operands and results of the matrix unit.
template <class... Tiles> constexpr bool kVectorTiles = ((Tiles::Loc == TileType::Vec) && ...);
template <class... Tiles> constexpr bool kRowMajorBoxes =
    ((Tiles::isBoxedLayout && Tiles::SFractal == SLayout::RowMajor) && ...);

template <class TileT> using TileView =
    View<Stored<typename TileT::DType>, typename Storage<TileT>::Row, typename Storage<TileT>::Col>;

// The first rows x cols elements of a tile as an operand of `instruction`.
template <class TileT> PTO_INLINE TileView<TileT> view(TileT& tile, int rows, int cols, const char* instruction) {
  if (kChecks && TilePlace::of(tile) == nullptr)
    fail("%s: a %s tile of %d x %d has no address; call TASSIGN before using it", instruction, name_of(TileT::Loc),
         TileT::Rows, TileT::Cols);
  if (kChecks && (rows > TileT::Rows || cols > TileT::Cols))
    fail("%s: %d x %d elements needed of a %s tile of %d x %d", instruction, rows, cols, name_of(TileT::Loc),
         TileT::Rows, TileT::Cols);
  return {reinterpret_cast<Stored<typename TileT::DType>*>(TilePlace::of(tile)), rows, cols, {}, {}};
}
// Its valid region.
template <class TileT> PTO_INLINE TileView<TileT> view(TileT& tile, const char* instruction) {
  return view(tile, tile.GetValidRow(), tile.GetValidCol(), instruction);
}

// ---- written elements: every instruction asks for its sources and tells of its results -------------------------------
template <class TileT> constexpr SimplerTileKind kTileKind =
    kind_of<TileT>(SIMPLER_TILE_ACCESS_ELEMENTS, int(sizeof(typename TileT::DType)),
                   table_axis(typename Storage<TileT>::Row()), table_axis(typename Storage<TileT>::Col()));

// The instruction reads rows x cols elements from (row, col) on. What lies outside of the tile's own valid region is
// padding: whoever reads that along does not use it.
template <class TileT>
PTO_INLINE void need_written(TileT& tile, int row, int col, int rows, int cols, const char* instruction) {
  if (!watches_memory()) return;
  if (rows > tile.GetValidRow() - row) rows = tile.GetValidRow() - row;
  if (cols > tile.GetValidCol() - col) cols = tile.GetValidCol() - col;
  if (rows > 0 && cols > 0)
    sim_state.hooks.tile_read(&kTileKind<TileT>, TilePlace::of(tile), row, col, rows, cols, instruction);
}
// The first rows x cols elements of a tile, or its valid region, to be read.
template <class TileT> PTO_INLINE TileView<TileT> source(TileT& tile, int rows, int cols, const char* instruction) {
  const TileView<TileT> from = view(tile, rows, cols, instruction);
  need_written(tile, 0, 0, rows, cols, instruction);
  return from;
}
template <class TileT> PTO_INLINE TileView<TileT> source(TileT& tile, const char* instruction) {
  return source(tile, tile.GetValidRow(), tile.GetValidCol(), instruction);
}
// A value per row, as reductions leave them. Kernels compute with these through row views of all of them (TRESHAPE), also
// when only some rows are valid.
template <class TileT> constexpr bool kColumnVector = TileT::Cols == 1 && !TileT::isRowMajor && !TileT::isBoxedLayout;

// Part of a tile has been written, and the instruction is done. After its sources were asked for: one may be `tile`.
// Column vectors count as written in all rows.
template <class TileT> PTO_INLINE RecordEvent wrote(TileT& tile, const TileView<TileT>& part) {
  if (watches_memory() && part.rows > 0 && part.cols > 0) {
    if constexpr (kColumnVector<TileT>)
      sim_state.hooks.tile_written(&kTileKind<TileT>, TilePlace::of(tile), 0, 0, TileT::Rows, 1);
    else
      sim_state.hooks.tile_written(&kTileKind<TileT>, part.base, first_of(part.row), first_of(part.col), part.rows,
                                   part.cols);
  }
  return {};
}

// A place in the tile's memory from a byte offset, or from an absolute address inside that memory.
template <class TileT> inline typename TileT::DType* place_tile(uint64_t address) {
  constexpr uint64_t kBytes = uint64_t{TileT::Numel} * sizeof(typename TileT::DType);
  const Memory memory = core_memory(memory_of(TileT::Loc));
  const uint64_t begin = reinterpret_cast<uintptr_t>(memory.base);
  const uint64_t offset = address >= begin && address < begin + memory.bytes ? address - begin : address;
  if (kChecks && (offset > memory.bytes || kBytes > memory.bytes - offset))
    fail("TASSIGN: a %s tile of %d x %d elements of %d bytes at 0x%llx needs %llu bytes; its memory ends at 0x%llx",
         name_of(TileT::Loc), TileT::Rows, TileT::Cols, int(sizeof(typename TileT::DType)), (unsigned long long)offset,
         (unsigned long long)kBytes, (unsigned long long)memory.bytes);
  return reinterpret_cast<typename TileT::DType*>(memory.base + offset);
}

}  // namespace tile_detail
}  // namespace pto
