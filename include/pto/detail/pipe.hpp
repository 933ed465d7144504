// TPipe, TPUSH, TPOP, TFREE: tiles between the cube core and the two vector cores (lanes 0 and 1) of one cluster.
//
// What      A ring of slots per direction, in memory that the cores of a block share. A pushed tile has one or two
//           parts, each a dense row-major matrix: with a split axis part i belongs to lane i, without there is part 0.
// Protocol                cube to vector                            vector to cube
//           TPUSH         waits until its slot's last tile was      waits until the cube has taken the slot's last
//                         taken by all lanes it went to             tile; the tile is there when all lanes that
//                                                                   share it have pushed their part
//           TPOP          waits for the tile, takes the lane's      waits for the tile, takes all of its parts
//                         part
//           TFREE         nothing: TPOP has copied the tile out and freed its slot
//           no split      lane 1 pops zeros without waiting (it     a push from lane 1 has no effect
//                         waits if the pipe is declared IsNoSplit)
// Threads   Each counter has one writer: one core. Counters start at zero, as the shared memory does, and run on.
// Order     [A] release of a counter pairs with [B] acquire: slot contents and headers are plain memory.
#pragma once

#include "rearrange.hpp"

namespace pto {

enum Direction : uint8_t { DIR_C2V = 1, DIR_V2C = 2, DIR_BOTH = 3 };
enum TileSplitAxis : uint8_t { TILE_NO_SPLIT = 0, TILE_UP_DOWN = 1, TILE_LEFT_RIGHT = 2 };

namespace tile_detail {

// Counted by one core, waited for by others.
struct alignas(64) PipeCounter {
  uint32_t value;

  uint32_t own() const { return value; }  // by its writer
  void publish(uint32_t next) {
    __atomic_store_n(&value, next, __ATOMIC_RELEASE);  // [A]
    wake(&value);
  }
  // Until more than `count` are counted. Counters may wrap: they are never further apart than a ring is long.
  void wait_beyond(uint32_t count) {
    Waiter waiter;
    for (;;) {
      const uint32_t seen = __atomic_load_n(&value, __ATOMIC_ACQUIRE);  // [B]
      if (static_cast<int32_t>(seen - count) > 0) return;
      waiter.wait(&value, seen);
    }
  }
};

// What lies in a slot; written by the producer (lane 0 where there are two) before it publishes.
struct PipeSlotHeader {
  uint32_t rows, cols, element_bytes;  // of one part
  uint32_t split;                      // TileSplitAxis
  uint32_t takers;                     // cube to vector: bit i for each lane i that will take a part
};

template <uint32_t kSlotBytes, uint32_t kSlots> struct PipeRing {
  PipeCounter produced[2], consumed[2];  // per lane; the cube counts in [0]
  PipeSlotHeader header[kSlots];
  alignas(64) unsigned char data[kSlots][2 * kSlotBytes];
};

struct PartShape {
  int rows, cols;
};
inline PartShape part_shape(int rows, int cols, TileSplitAxis split) {
  if ((split == TILE_UP_DOWN && rows % 2 != 0) || (split == TILE_LEFT_RIGHT && cols % 2 != 0))
    fail("TPUSH: a tile of %d x %d cannot be split into two equal parts", rows, cols);
  return {split == TILE_UP_DOWN ? rows / 2 : rows, split == TILE_LEFT_RIGHT ? cols / 2 : cols};
}

}  // namespace tile_detail

// A pipe as one core sees it. All cores of a cluster that use it declare it with equal parameters: flag, direction,
// slot size and number name the shared ring.
//   slots        where to keep the slots in global memory, or null for memory of the cluster
//   c2v_base     where tiles without an address are popped to in a vector core's memory
//   v2c_base     the same in the cube core's matrix memory
template <uint8_t kFlag, uint8_t kDirection, uint32_t kSlotBytes, uint32_t kSlots, uint32_t kLocalSlots = 2,
          bool kIsNoSplit = false>
class TPipe {
 public:
  static_assert(kDirection >= DIR_C2V && kDirection <= DIR_BOTH, "a pipe's direction is DIR_C2V, DIR_V2C or DIR_BOTH");
  static_assert(kSlots > 0 && kSlotBytes > 0 && kLocalSlots > 0, "a pipe has at least one slot of at least one byte");
  static constexpr bool kToVector = (kDirection & DIR_C2V) != 0, kToCube = (kDirection & DIR_V2C) != 0;
  static constexpr bool kNoSplitForBoth = kIsNoSplit;

  using Ring = tile_detail::PipeRing<kSlotBytes, kSlots>;

  // What a core adds to slot addresses on chips that do not know its lane; here the lane is known.
  struct Entry {
    template <class N> void setEntryOffset(N) {}
  };
  Entry prod, cons;

  TPipe(void* slots, uint32_t c2v_base, uint32_t v2c_base)
      : slots_(kDirection == DIR_BOTH ? nullptr : static_cast<unsigned char*>(slots)),
        c2v_base_(c2v_base),
        v2c_base_(v2c_base) {
    constexpr uint64_t kKey = uint64_t{kFlag} << 56 | uint64_t{kDirection} << 48 | uint64_t{kSlots & 0xff} << 40 |
                              uint64_t{kLocalSlots & 0xff} << 32 | kSlotBytes;
    constexpr uint64_t kBytes = sizeof(Ring) * (kDirection == DIR_BOTH ? 2 : 1);
    rings_ = static_cast<Ring*>(tile_detail::pipe_state(kKey, kBytes));
  }

  // For TPUSH and TPOP.
  Ring& ring(bool to_vector) const { return rings_[kDirection == DIR_BOTH && !to_vector ? 1 : 0]; }
  unsigned char* slot(bool to_vector, uint32_t number, uint32_t bytes_needed) const {
    const uint32_t capacity = slots_ != nullptr ? kSlotBytes : 2 * kSlotBytes;
    if (bytes_needed > capacity)
      tile_detail::fail("TPUSH: a tile of %u bytes does not fit into a slot of %u bytes", bytes_needed, capacity);
    if (slots_ != nullptr) return slots_ + uint64_t{number % kSlots} * kSlotBytes;
    return ring(to_vector).data[number % kSlots];
  }
  uint64_t local_place(bool to_vector, uint32_t number) const {
    const uint32_t slots = slots_ != nullptr ? kLocalSlots : kSlots;
    return uint64_t{to_vector ? c2v_base_ : v2c_base_} + uint64_t{number % slots} * kSlotBytes;
  }
  static constexpr uint32_t slot_count() { return kSlots; }

 private:
  Ring* rings_;
  unsigned char* slots_;
  uint32_t c2v_base_, v2c_base_;
};

namespace tile_detail {

template <class T>
PTO_INLINE View<Stored<T>, FreeAxis, FixedAxis<1>> slot_part(unsigned char* slot, int part, int rows, int cols) {
  Stored<T>* const base = reinterpret_cast<Stored<T>*>(slot) + Offset{part} * rows * cols;
  return row_major(base, rows, cols, cols);
}

template <class Pipe, class TileT> PTO_INLINE void push_to_vector(Pipe& pipe, TileT& tile, TileSplitAxis split) {
  using T = typename TileT::DType;
  auto& ring = pipe.ring(true);
  const auto from = source(tile, "TPUSH");
  const PartShape part = part_shape(from.rows, from.cols, split);
  const uint32_t number = ring.produced[0].own();
  unsigned char* const slot = pipe.slot(true, number, uint32_t(from.rows * from.cols * int(sizeof(T))));
  PipeSlotHeader& header = ring.header[number % Pipe::slot_count()];
  if (number >= Pipe::slot_count())
    for (int lane = 0; lane < 2; ++lane)
      if (header.takers & (1u << lane)) ring.consumed[lane].wait_beyond(number - Pipe::slot_count());
  transfer(slot_part<T>(slot, 0, part.rows, part.cols), window(from, 0, 0, part.rows, part.cols), PutSame());
  if (split != TILE_NO_SPLIT)
    transfer(slot_part<T>(slot, 1, part.rows, part.cols),
             window(from, from.rows - part.rows, from.cols - part.cols, part.rows, part.cols), PutSame());
  const bool both = split != TILE_NO_SPLIT || Pipe::kNoSplitForBoth;
  header = {uint32_t(part.rows), uint32_t(part.cols), uint32_t(sizeof(T)), split, both ? 3u : 1u};
  ring.produced[0].publish(number + 1);
}

template <class Pipe, class TileT> PTO_INLINE void push_to_cube(Pipe& pipe, TileT& tile, TileSplitAxis split) {
  using T = typename TileT::DType;
  auto& ring = pipe.ring(false);
  const int lane = static_cast<int>(sub_block_id());
  const auto from = view(tile, "TPUSH");
  const uint32_t number = ring.produced[lane].own();
  if (split == TILE_NO_SPLIT && lane != 0) return ring.produced[lane].publish(number + 1);
  need_written(tile, 0, 0, from.rows, from.cols, "TPUSH");
  const uint32_t bytes = uint32_t(from.rows * from.cols * int(sizeof(T))) * (split == TILE_NO_SPLIT ? 1 : 2);
  unsigned char* const slot = pipe.slot(false, number, bytes);
  if (number >= Pipe::slot_count()) ring.consumed[0].wait_beyond(number - Pipe::slot_count());
  transfer(slot_part<T>(slot, lane, from.rows, from.cols), from, PutSame());
  if (lane == 0)
    ring.header[number % Pipe::slot_count()] = {uint32_t(from.rows), uint32_t(from.cols), uint32_t(sizeof(T)), split,
                                                1u};
  ring.produced[lane].publish(number + 1);
}

// Part `part` of a slot into dst's window at (row, col), as far as dst is valid.
template <class TileT>
PTO_INLINE void take_part(TileT& tile, const PipeSlotHeader& header, unsigned char* slot, int part, int row, int col) {
  using T = typename TileT::DType;
  const auto to = view(tile, "TPOP");
  const int rows = to.rows - row < int(header.rows) ? to.rows - row : int(header.rows);
  const int cols = to.cols - col < int(header.cols) ? to.cols - col : int(header.cols);
  if (rows <= 0 || cols <= 0) return;
  const auto taken = window(to, row, col, rows, cols);
  transfer(taken, window(slot_part<T>(slot, part, int(header.rows), int(header.cols)), 0, 0, rows, cols), PutSame());
  wrote(tile, taken);
}

template <class TileT> PTO_INLINE void need_shape(TileT& tile, const PipeSlotHeader& header, int rows, int cols) {
  if (tile.GetValidRow() > rows || tile.GetValidCol() > cols || header.element_bytes != sizeof(typename TileT::DType))
    fail("TPOP: %d x %d elements of %d bytes wanted, but %d x %d elements of %u bytes were pushed", tile.GetValidRow(),
         tile.GetValidCol(), int(sizeof(typename TileT::DType)), rows, cols, header.element_bytes);
}

template <class Pipe, class TileT> PTO_INLINE void pop_on_vector(Pipe& pipe, TileT& tile, TileSplitAxis split) {
  auto& ring = pipe.ring(true);
  const int lane = static_cast<int>(sub_block_id());
  const uint32_t number = ring.consumed[lane].own();
  if (TilePlace::of(tile) == nullptr) TilePlace::of(tile) = place_tile<TileT>(pipe.local_place(true, number));
  const bool empty = split == TILE_NO_SPLIT && lane != 0;
  if (!empty || Pipe::kNoSplitForBoth) ring.produced[0].wait_beyond(number);
  if (empty) {
    const auto zeros = view(tile, "TPOP");
    fill(zeros, bit_cast<Stored<typename TileT::DType>>(typename TileT::DType(0)));
    wrote(tile, zeros);
  } else {
    const PipeSlotHeader header = ring.header[number % Pipe::slot_count()];
    need_shape(tile, header, int(header.rows), int(header.cols));
    take_part(tile, header, pipe.slot(true, number, 0), header.split == TILE_NO_SPLIT ? 0 : lane, 0, 0);
  }
  ring.consumed[lane].publish(number + 1);
}

template <class Pipe, class TileT> PTO_INLINE void pop_on_cube(Pipe& pipe, TileT& tile) {
  auto& ring = pipe.ring(false);
  const uint32_t number = ring.consumed[0].own();
  if (TilePlace::of(tile) == nullptr) TilePlace::of(tile) = place_tile<TileT>(pipe.local_place(false, number));
  ring.produced[0].wait_beyond(number);
  const PipeSlotHeader header = ring.header[number % Pipe::slot_count()];
  const bool up_down = header.split == TILE_UP_DOWN, left_right = header.split == TILE_LEFT_RIGHT;
  const int rows = int(header.rows), cols = int(header.cols);
  need_shape(tile, header, up_down ? 2 * rows : rows, left_right ? 2 * cols : cols);
  unsigned char* const slot = pipe.slot(false, number, 0);
  take_part(tile, header, slot, 0, 0, 0);
  if (up_down || left_right) {
    ring.produced[1].wait_beyond(number);
    take_part(tile, header, slot, 1, up_down ? rows : 0, left_right ? cols : 0);
  }
  ring.consumed[0].publish(number + 1);
}

}  // namespace tile_detail

// Vector tiles belong to the vector cores, all others to the cube core.
template <class Pipe, class TileT, TileSplitAxis kSplit> PTO_INLINE RecordEvent TPUSH(Pipe& pipe, TileT& tile) {
  constexpr bool kToVector = TileT::Loc != TileType::Vec;
  static_assert(kToVector ? Pipe::kToVector : Pipe::kToCube,
                "TPUSH: the pipe does not lead away from this tile's core");
  if constexpr (kToVector)
    tile_detail::push_to_vector(pipe, tile, kSplit);
  else
    tile_detail::push_to_cube(pipe, tile, kSplit);
  return {};
}

// A tile without an address gets one at the pipe's base; one that has an address keeps it.
template <class Pipe, class TileT, TileSplitAxis kSplit> PTO_INLINE RecordEvent TPOP(Pipe& pipe, TileT& tile) {
  constexpr bool kOnVector = TileT::Loc == TileType::Vec;
  static_assert(kOnVector ? Pipe::kToVector : Pipe::kToCube, "TPOP: the pipe does not lead to this tile's core");
  if constexpr (kOnVector)
    tile_detail::pop_on_vector(pipe, tile, kSplit);
  else
    tile_detail::pop_on_cube(pipe, tile);
  tile_detail::order_memory();
  return {};
}

// Slots are free as soon as TPOP has returned.
template <class Pipe, TileSplitAxis kSplit> PTO_INLINE RecordEvent TFREE(Pipe&) { return {}; }

}  // namespace pto
