// The copy between global tensors that the communication instructions share.
#pragma once

#include "comm_types.hpp"

namespace pto {
namespace comm {
namespace comm_detail {
using namespace ::pto::tile_detail;

// Copies dst's extent, plane by plane.
template <class Dst, class Src, class Put>
PTO_INLINE RecordEvent copy_globals(const Dst& dst, const Src& src, Put put, const char* name) {
  static_assert(std::is_same<typename Dst::RawDType, typename Src::RawDType>::value,
                "both sides have one element type");
  need_memory(dst, name);
  need_memory(src, name);
  using To = Stored<typename Dst::DType>;
  using From = Stored<typename Src::DType>;
  const int rows = static_cast<int>(dst.GetShape(3)), cols = static_cast<int>(dst.GetShape(4));
  for (int64_t a = 0; a < dst.GetShape(0); ++a)
    for (int64_t b = 0; b < dst.GetShape(1); ++b)
      for (int64_t c = 0; c < dst.GetShape(2); ++c) {
        To* const to =
            reinterpret_cast<To*>(dst.data()) + a * dst.GetStride(0) + b * dst.GetStride(1) + c * dst.GetStride(2);
        From* const from =
            reinterpret_cast<From*>(src.data()) + a * src.GetStride(0) + b * src.GetStride(1) + c * src.GetStride(2);
        if (dst.GetStride(4) == 1 && src.GetStride(4) == 1)
          transfer(row_major(to, rows, cols, dst.GetStride(3)), row_major(from, rows, cols, src.GetStride(3)), put);
        else
          transfer(View<To, FreeAxis, FreeAxis>{to, rows, cols, {dst.GetStride(3)}, {dst.GetStride(4)}},
                   View<From, FreeAxis, FreeAxis>{from, rows, cols, {src.GetStride(3)}, {src.GetStride(4)}}, put);
      }
  order_memory();
  return {};
}

}  // namespace comm_detail
}  // namespace comm
}  // namespace pto
