// SimplerTileKernels: the hot loops of the tile library, compiled once for several instruction sets.
//
// What      Kernels are compiled for any processor of their architecture. The simulator hands a table for the one it
//           runs on over (SimplerSimHooks::kernels), and the tile library calls it instead of its own loops. Results
//           agree in class, not in each bit: sums may associate differently and use fused operations; conversions agree
//           exactly.
// Threads   Every function may be called from any thread at any time; none keeps state, none allocates.
// Version   Members are only ever added at the end. `size` is that of the side that filled the table: what lies beyond
//           it, and what is null, is absent. Plain C.
#ifndef SIMPLER_KERNEL_TILE_KERNELS_H_
#define SIMPLER_KERNEL_TILE_KERNELS_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum SimplerTileElement {
  SIMPLER_TILE_FLOAT = 0,
  SIMPLER_TILE_HALF = 1,    // IEEE binary16
  SIMPLER_TILE_BFLOAT = 2,  // the upper half of a float
  SIMPLER_TILE_INT8 = 3,
  SIMPLER_TILE_INT32 = 4
};

// Index i lies at i * step if run is 0; else, with p = first + i, at p / run * block + p % run * step. In elements.
typedef struct SimplerTileAxis {
  int64_t step, block;
  int32_t run, first;
} SimplerTileAxis;

// Element (r, c) lies at base + row(r) + col(c).
typedef struct SimplerTileMatrix {
  void* base;
  SimplerTileAxis row, col;
  int32_t element;  // SimplerTileElement
} SimplerTileMatrix;

// out = start + left x right; left is rows x inner, right is inner x cols. All extents are positive.
typedef struct SimplerTileProduct {
  SimplerTileMatrix out;          // FLOAT, or INT32 where the operands are INT8 (exact, wraps around)
  SimplerTileMatrix start;        // of out's element type, may be out itself; a null base stands for zeros
  SimplerTileMatrix left, right;  // of one element type: FLOAT, HALF, BFLOAT or INT8
  int32_t rows, cols, inner;
} SimplerTileProduct;

typedef struct SimplerTileKernels {
  uint32_t size;       // sizeof(SimplerTileKernels)
  const char* target;  // "avx2", "avx512", "neon"; "portable" for any processor of the architecture

  void (*multiply)(const SimplerTileProduct* product);

  // dst[i] = f(src[i]) for i below count; dst may be src.
  void (*exp)(float* dst, const float* src, int64_t count);
  void (*log)(float* dst, const float* src, int64_t count);

  // Between float and the 16-bit floats, given as their bits. To the shorter ones to nearest even.
  void (*from_half)(float* dst, const uint16_t* src, int64_t count);
  void (*to_half)(uint16_t* dst, const float* src, int64_t count);
  void (*from_bfloat)(float* dst, const uint16_t* src, int64_t count);
  void (*to_bfloat)(uint16_t* dst, const float* src, int64_t count);

  // dst[c * dst_step + r] = src[r * src_step + c] for r below rows, c below cols; no byte of dst is one of src.
  void (*transpose_bytes)(uint8_t* dst, int64_t dst_step, const uint8_t* src, int64_t src_step, int64_t rows,
                          int64_t cols);
} SimplerTileKernels;

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // SIMPLER_KERNEL_TILE_KERNELS_H_
