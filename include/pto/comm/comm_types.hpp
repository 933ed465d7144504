// Types of communication between cores and ranks: signals, how they change, how they are waited for.
#pragma once

#include "../pto-inst.hpp"

namespace pto {
namespace comm {

// A 32-bit counter in memory that both sides see; a grid of them.
using Signal = GlobalTensor<int32_t, Shape<1, 1, 1, 1, 1>, Stride<1, 1, 1, 1, 1>, Layout::ND>;
template <int64_t kRows, int64_t kCols> using Signal2D =
    GlobalTensor<int32_t, Shape<1, 1, 1, kRows, kCols>, Stride<kRows * kCols, kRows * kCols, kRows * kCols, kCols, 1>,
                 Layout::ND>;

enum class NotifyOp { AtomicAdd = 0, Set = 1 };
enum class WaitCmp { EQ = 0, NE, GT, GE, LT, LE };

}  // namespace comm
}  // namespace pto
