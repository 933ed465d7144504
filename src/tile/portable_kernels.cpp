// The functions of SimplerTileKernels for any processor: the loops that the tile library's headers have, compiled here so
// that kernels for the simulator need not (SIMPLER_TILE_HOSTED).
#define PTO_EXPORT inline  // this is no kernel: nobody registers hooks here
#include <pto/detail/elementwise.hpp>
#include <pto/detail/matmul.hpp>

#include "tile/targets.h"

namespace simpler::tile {
namespace {

namespace td = pto::tile_detail;

// An axis that is known at run time only, boxed or not.
struct AnyAxis {
  static constexpr int kRun = 0;  // no run that loops could count on
  static constexpr bool kUnit = false, kZero = false;
  SimplerTileAxis axis;
  td::Offset step() const { return axis.step; }
  td::Offset offset(td::Offset i) const {
    if (axis.run == 0) return i * axis.step;
    const auto at = static_cast<uint32_t>(axis.first + i), run = static_cast<uint32_t>(axis.run);
    return td::Offset{at / run} * axis.block + td::Offset{at % run} * axis.step;
  }
};
td::Offset advance(AnyAxis& axis, int by) {
  if (axis.axis.run == 0) return by * axis.axis.step;
  axis.axis.first += by;
  return 0;
}

template <class T> using AnyView = td::View<T, AnyAxis, AnyAxis>;
template <class T> AnyView<T> view(const SimplerTileMatrix& matrix, int rows, int cols) {
  return {static_cast<T*>(matrix.base), rows, cols, {matrix.row}, {matrix.col}};
}

template <class A, class T> void multiply_of(const SimplerTileProduct& p) {
  const AnyView<A> start = view<A>(p.start, p.rows, p.cols);
  td::multiply_here(view<A>(p.out, p.rows, p.cols), p.start.base != nullptr ? &start : nullptr,
                    view<T>(p.left, p.rows, p.inner), view<T>(p.right, p.inner, p.cols));
}
void multiply(const SimplerTileProduct* product) {
  switch (product->left.element) {
    case SIMPLER_TILE_HALF: return multiply_of<float, ::half>(*product);
    case SIMPLER_TILE_BFLOAT: return multiply_of<float, ::bfloat16_t>(*product);
    case SIMPLER_TILE_INT8: return multiply_of<int32_t, int8_t>(*product);
    default: return multiply_of<float, float>(*product);
  }
}

template <class Op> void apply(float* dst, const float* src, int64_t count) {
  td::apply_row_here(Op(), dst, count, td::RowElements<float>{src});
}
template <class Short> void widen(float* dst, const uint16_t* src, int64_t count) {
  td::convert_run_here(dst, reinterpret_cast<const td::Stored<Short>*>(src), count);
}
template <class Short> void shorten(uint16_t* dst, const float* src, int64_t count) {
  td::convert_run_here(reinterpret_cast<td::Stored<Short>*>(dst), src, count);
}

void transpose_bytes(uint8_t* dst, int64_t dst_step, const uint8_t* src, int64_t src_step, int64_t rows, int64_t cols) {
  using Columns = td::View<uint8_t, td::FixedAxis<1>, td::FreeAxis>;
  using Rows = td::View<const uint8_t, td::FreeAxis, td::FixedAxis<1>>;
  const int m = static_cast<int>(rows), n = static_cast<int>(cols);
  td::put_across_here(Columns{dst, m, n, {}, {dst_step}}, Rows{src, m, n, {src_step}, {}}, td::PutSame());
}

constexpr SimplerTileKernels kTable = {sizeof(SimplerTileKernels),
                                       "portable",
                                       multiply,
                                       apply<td::Exp>,
                                       apply<td::Log>,
                                       widen<::half>,
                                       shorten<::half>,
                                       widen<::bfloat16_t>,
                                       shorten<::bfloat16_t>,
                                       transpose_bytes};

}  // namespace

const SimplerTileKernels* portable_kernels() { return &kTable; }

}  // namespace simpler::tile
