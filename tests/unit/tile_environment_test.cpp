// What kernel sources expect of their surroundings: names that they redefine, idioms that they use, headers alone.
// This file is written like kernels are; that it compiles is most of what it shows.
#include <pto/pto-inst.hpp>  // first: it needs nothing before it

#ifndef PTO_CPUSTUB_HPP
#error "kernels detect the simulator by this name"
#endif
#ifndef __aicore__
#define __aicore__ [aicore]
#endif
#if defined(dcci) || defined(dsb) || defined(set_flag) || defined(TADD) || defined(half)
#error "whatever kernels redefine or find by its arguments is not a macro"
#endif

// ---- redefinitions that occur in kernels for both the chip and the simulator --------------------------------------
namespace cache_line_t {
static constexpr int SINGLE_CACHE_LINE = 5;
}
typedef int mem_dsb_t;
static int kernel_dsb_calls = 0;
static inline void dsb(mem_dsb_t) { ++kernel_dsb_calls; }
static inline void kernel_refresh(const volatile int64_t* word) {
  dcci(word, cache_line_t::SINGLE_CACHE_LINE, dcci_dst_t::CACHELINE_OUT);
  dcci(word, SINGLE_CACHE_LINE, CACHELINE_OUT);
  dcci(word, ENTIRE_DATA_CACHE);
}
static inline int64_t get_block_idx(__gm__ int64_t* args) { return args[0]; }
namespace detail {  // a kernel's own; `using namespace pto` must not collide with it
static int answer() { return 42; }
}  // namespace detail
// NOLINTNEXTLINE(build/namespaces): kernels do
using namespace pto;
static int own_detail() { return detail::answer(); }

#include <gtest/gtest.h>

#include <chrono>

#include <pto/common/constants.hpp>
#include <pto/common/fifo.hpp>
#include <pto/common/pto_tile.hpp>
#include <pto/common/type.hpp>
#include <pto/npu/a5/utils.hpp>
#include "pto/comm/async_common/async_types.hpp"
#include "pto/comm/comm_types.hpp"
#include "pto/comm/pto_comm_inst.hpp"
#include "unit/support/tile_support.h"

template <class T> static AICORE inline __aicore__ __gm__ T* pointer_of(__gm__ int64_t* args, int i) {
  return reinterpret_cast<__gm__ T*>(args[i]);
}

// One body for both core types: cube and vector instructions have to compile side by side.
static __aicore__ void kernel_body(__gm__ int64_t* args) {
  constexpr int R = 16, C = 32;
  set_mask_norm();
  set_vector_mask(-1, -1);
  const int64_t block = get_block_idx(args);
  using Global = GlobalTensor<float, pto::Shape<1, 1, 1, R, C>, pto::Stride<R * C, R * C, R * C, C, 1>>;
  typename Global::Shape shape;
  typename Global::Stride stride;
  Global in(pointer_of<float>(args, 1) + block * R * C, shape, stride), out(pointer_of<float>(args, 2), shape);
  Tile<TileType::Vec, float, R, C, BLayout::RowMajor, -1, -1> bank[2] = {{R, C}, {size_t{R}, int64_t{C}}};
  for (int i = 0; i < 2; ++i) TASSIGN(bank[i], i * R * C * sizeof(float));
  TLOAD(bank[0], in);
  const ::event_t event = static_cast<::event_t>(block & 7);
  set_flag(PIPE_MTE2, PIPE_V, event);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  pipe_barrier(PIPE_ALL);
  TADDS(bank[1], bank[0], 1);
  TileLeft<float, R, C> left;
  TileRight<float, C, C> right;
  TileAcc<float, R, C> acc;
  TASSIGN(left, 0);
  TASSIGN(right, 0u);
  TASSIGN(acc, size_t{0});
  TMATMUL(acc, left, right);
  TADD(bank[1], bank[1], bank[0]);
  TSTORE(out, bank[1]);
  dsb(DSB_DDR);
}

TEST(TileEnvironment, LetsKernelsRedefineWhatTheyLike) {
  EXPECT_EQ(cache_line_t::SINGLE_CACHE_LINE, 5) << "a kernel's own constant wins";
  EXPECT_EQ(own_detail(), 42);
  const volatile int64_t word = 0;
  kernel_refresh(&word);
}
TEST(TileEnvironment, RunsAKernelWrittenForBothCoreTypes) {
  std::vector<float> in(2 * 16 * 32), out(16 * 32);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  int64_t args[3] = {1, reinterpret_cast<int64_t>(in.data()), reinterpret_cast<int64_t>(out.data())};
  kernel_dsb_calls = 0;
  kernel_body(args);
  for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], 2 * in[512 + i] + 1);
  EXPECT_EQ(kernel_dsb_calls, 1) << "a kernel's own dsb wins over the library's template";
}
TEST(TileEnvironment, KnowsNoBlockWithoutArguments) {
  EXPECT_EQ(::get_block_idx(), 0);
  EXPECT_EQ(get_block_num(), 1);
  EXPECT_EQ(get_subblockdim(), 1);
  EXPECT_GT(get_sys_cnt(), 0);
}

// ---- shapes and strides -------------------------------------------------------------------------------------------

TEST(TileEnvironment, TakesOneValueForEachDynamicDimension) {
  const Shape<1, DYNAMIC, 3, DYNAMIC, 5> none, two(7, 8), all(9, 9, 9, 9, 9);
  const auto shape = [](const auto& s) { return std::vector<int64_t>(s.shape, s.shape + 5); };
  EXPECT_EQ(shape(none), (std::vector<int64_t>{1, 1, 3, 1, 5}));
  EXPECT_EQ(shape(two), (std::vector<int64_t>{1, 7, 3, 8, 5}));
  EXPECT_EQ(shape(all), (std::vector<int64_t>{1, 9, 3, 9, 5})) << "fixed dimensions keep their value";
  float memory[1];
  GlobalTensor<float, Shape<1, DYNAMIC, 3, DYNAMIC, 5>, Stride<>> global(memory, two);
  global.SetShape<1, 3>(4, size_t{6});
  global.SetStride<0>(100);
  EXPECT_EQ(global.GetShape(1), 4);
  EXPECT_EQ(global.GetShape(3), 6);
  EXPECT_EQ(global.GetStride(0), 100);
  EXPECT_EQ((decltype(global)::GetShape<2>()), 3);
}
TEST(TileEnvironment, TakesBracesForShapesAndStridesAndDeducesDynamicOnes) {
  float memory[1];
  const GlobalTensor<float, Shape<1, 1, 1, DYNAMIC, DYNAMIC>, Stride<1, 1, 1, DYNAMIC, 1>> braces(memory, {4, 8}, {16});
  EXPECT_EQ(braces.GetShape(3), 4);
  EXPECT_EQ(braces.GetShape(4), 8);
  EXPECT_EQ(braces.GetStride(3), 16);
  const size_t rows = 3;
  const GlobalTensor<float, Shape<>, Stride<>> deduced(memory, pto::Shape(1, 1, 1, rows, 8),
                                                       pto::Stride(24, 24, 24, 8, 1));
  EXPECT_EQ(deduced.GetShape(3), 3);
  EXPECT_EQ(deduced.GetStride(3), 8);
}
TEST(TileEnvironment, AccumulatesInScalarsOfShortFloats) {
  const auto run = [](auto x) {
    x += 2.5f;
    x *= x;
    x -= decltype(x)(1.0f);
    x /= 2;
    return static_cast<float>(x);
  };
  EXPECT_EQ(run(::bfloat16_t(1.0f)), 5.625f);
  EXPECT_EQ(run(::half(1.0f)), 5.625f);
  ::bfloat16_t coarse(256.0f);
  EXPECT_EQ(static_cast<float>(coarse += 1.0f), 256.0f) << "each result is rounded";
}
TEST(TileEnvironment, DescribesDenseMatrices) {
  using Nz = TileShape2D<::half, 64, 48, Layout::NZ>;
  using NzStride = BaseShape2D<::half, 64, 48, Layout::NZ>;
  const auto shape = [](auto s) { return std::vector<int64_t>(s.shape, s.shape + 5); };
  const auto stride = [](auto s) { return std::vector<int64_t>(s.stride, s.stride + 5); };
  EXPECT_EQ(shape(Nz()), (std::vector<int64_t>{1, 3, 4, 16, 16}));
  EXPECT_EQ(stride(NzStride()), (std::vector<int64_t>{64 * 48, 64 * 16, 256, 16, 1}));
  EXPECT_EQ(shape(TileShape2D<float, 8, 24>()), (std::vector<int64_t>{1, 1, 1, 8, 24}));
  EXPECT_EQ(stride(BaseShape2D<float, 8, 24>()), (std::vector<int64_t>{192, 192, 192, 24, 1}));
  EXPECT_EQ(stride(BaseShape2D<float, 8, 24, Layout::DN>()), (std::vector<int64_t>{192, 192, 192, 1, 8}));
}
