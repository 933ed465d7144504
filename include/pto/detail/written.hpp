// Which elements of tile memory have been written since the block began: what a tile library tells the simulator about
// the instructions it runs. The books are kept by the simulator (SimplerSimHooks::tile_written), by address: tiles that
// alias share them. Without the simulator, or with checks off, nothing happens here.
#pragma once

#include "layout.hpp"

namespace pto {
namespace tile_detail {

template <Offset kStep> constexpr SimplerTileAxis table_axis(const FixedAxis<kStep>&) { return {kStep, 0, 0, 0}; }
template <int kLength, Offset kStep, Offset kBlock>
constexpr SimplerTileAxis table_axis(const BoxAxis<kLength, kStep, kBlock>& axis) {
  return {kStep, kBlock, kLength, axis.first};
}
constexpr SimplerTileAxis kUnitAxis = {1, 0, 0, 0};

// Where a view starts inside boxes; other axes have moved its base instead.
template <class AxisT> constexpr int first_of(const AxisT& axis) {
  if constexpr (AxisT::kRun == 0)
    return 0;
  else
    return axis.first;
}

// False in stand-alone programs and without checks.
PTO_INLINE bool watches_memory() { return kChecks && (kHosted || sim_state.hooks.tile_read != nullptr); }

}  // namespace tile_detail
}  // namespace pto
