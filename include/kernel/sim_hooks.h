// SimplerSimHooks: what a simulated core gives to the tile library inside a kernel's shared object.
//
// What      A kernel that uses the tile library exports `simpler_sim_register_hooks`. The simulator calls it once,
//           right after dlopen and before the first kernel call; the table is copied. A kernel without it needs none.
// Threads   Every hook may be called from any thread that runs a kernel, at any time while a kernel runs.
// Version   Members are only ever added at the end. `size` is sizeof(SimplerSimHooks) of the side that filled the
//           table: members beyond it, and null members, count as absent. Plain C: both sides may be of any language.
#ifndef SIMPLER_KERNEL_SIM_HOOKS_H_
#define SIMPLER_KERNEL_SIM_HOOKS_H_

#include <stdint.h>

#include "tile_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SIMPLER_SIM_HOOKS_VERSION 2u

// The memories of one simulated core, in the order of SIMPLER_TILE_MEMORY_BYTES_INIT.
enum SimplerTileMemory {
  SIMPLER_TILE_MEMORY_UB = 0,           // vector tiles, bias and scaling vectors
  SIMPLER_TILE_MEMORY_L1 = 1,           // matrix tiles
  SIMPLER_TILE_MEMORY_L0A = 2,          // left operands
  SIMPLER_TILE_MEMORY_L0B = 3,          // right operands
  SIMPLER_TILE_MEMORY_L0C = 4,          // accumulators
  SIMPLER_TILE_MEMORY_SCALE_LEFT = 5,   // block scales of left operands
  SIMPLER_TILE_MEMORY_SCALE_RIGHT = 6,  // block scales of right operands
  SIMPLER_TILE_MEMORY_COUNT = 7
};

// Bytes per memory: the largest of all modelled chips. The vector memory is larger than any real one, because code
// written against older simulators relies on 512 KiB.
#define SIMPLER_TILE_MEMORY_BYTES_INIT \
  { 512u * 1024u, 512u * 1024u, 64u * 1024u, 64u * 1024u, 256u * 1024u, 8u * 1024u, 8u * 1024u }

// Kinds of cores, to be combined.
enum SimplerTaskCores { SIMPLER_TASK_CUBE_CORES = 1, SIMPLER_TASK_VECTOR_CORES = 2 };

// What the rows and columns of an access stand for: the words of a message depend on it.
enum SimplerTileAccess {
  SIMPLER_TILE_ACCESS_ELEMENTS = 0,  // rows and columns of the tile
  SIMPLER_TILE_ACCESS_PLACES = 1,    // one row of elements in the order of their storage
  SIMPLER_TILE_ACCESS_MASK = 2       // rows of bytes with a bit for each column
};

// What the tiles of one type have in common. Element (r, c) lies at base + row(r) + col(c), see SimplerTileAxis.
typedef struct SimplerTileKind {
  uint32_t memory;  // SimplerTileMemory
  uint32_t access;  // SimplerTileAccess
  const char* name;
  int32_t rows, cols;     // of the tile, for messages
  int32_t element_bytes;  // of what the axes count
  SimplerTileAxis row, col;
} SimplerTileKind;

typedef struct SimplerSimHooks {
  uint32_t version;  // SIMPLER_SIM_HOOKS_VERSION
  uint32_t size;     // sizeof(struct SimplerSimHooks)

  // Memory `location` (SimplerTileMemory) of the simulated core that runs on the calling thread, and its size. At least
  // 64-byte aligned, zero-filled when the core is created, valid until the kernel call returns. Never null.
  void* (*tile_memory)(uint32_t location, uint64_t* bytes);

  // Lane of the calling core inside its cluster: 0 or 1 on vector cores, 0 on cube cores.
  uint32_t (*sub_block_id)(void);

  // Memory shared by the three cores of the block that the calling core works on, one piece per key. Zero-filled at its
  // first use within the block, 64-byte aligned, valid until all lanes of the block have returned.
  void* (*pipe_state)(uint64_t key, uint64_t bytes);

  // Waits until *word differs from `seen`, or unpark(word) is called, or a short time (milliseconds) has passed; may
  // return early: callers test again. The word may be written by a plain store, by another process or by the host, so
  // unpark() is a hint that shortens the wait. May unwind the kernel when its run has been given up.
  void (*park)(const volatile uint32_t* word, uint32_t seen);
  void (*unpark)(const volatile uint32_t* word);

  // A check of the tile library failed; `text` is one sentence, borrowed for the call. Must not return: it ends the
  // kernel, for example by an exception. If it does return, the process aborts.
  void (*check_failed)(const char* text);

  // Loops for the instruction sets of this processor, or null: then the tile library uses its own. Valid as long as the
  // process.
  const SimplerTileKernels* kernels;

  // How many cores of these kinds (SimplerTaskCores) the task of the calling core runs on, over all its blocks.
  uint32_t (*task_cores)(uint32_t kinds);

  // rows x cols elements from (row, col) on of the tile at `base` have been written by the calling core, or may have
  // been. Forgotten when the core begins its next block. What lies outside of its memory is ignored.
  void (*tile_written)(const SimplerTileKind* kind, const void* base, int32_t row, int32_t col, int32_t rows,
                       int32_t cols);
  // `instruction` reads such elements: a failed check (as check_failed) if one of them has certainly not been written
  // since the block began.
  void (*tile_read)(const SimplerTileKind* kind, const void* base, int32_t row, int32_t col, int32_t rows, int32_t cols,
                    const char* instruction);
} SimplerSimHooks;

// Exported by kernels (weak, default visibility).
typedef void (*SimplerSimRegisterHooks)(const SimplerSimHooks* hooks);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // SIMPLER_KERNEL_SIM_HOOKS_H_
