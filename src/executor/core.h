// Core: one simulated core. An object, not a thread: a worker thread borrows it while it runs blocks of its kind.
//
// What      Identity {type, cluster, lane}, the argument array that a kernel receives, its contexts, and its tile memory.
//           All of it belongs to the core and follows it from thread to thread.
// Threads   Used by the one worker that acquired it from the CorePool; the pool's lock orders hand-overs.
// Memory    Tile memory is address space until a kernel touches it.
#pragma once
#include <cstdint>
#include <cstring>

#include "base/virtual_memory.h"
#include "common/core_type.h"
#include "executor/cluster_memory.h"
#include "executor/written_tiles.h"
#include "graph/task.h"
#include "intrinsic.h"
#include "sim_hooks.h"

namespace simpler::executor {

class Core {
 public:
  Core() = default;
  void place(CoreType type, int index, int cluster, int lane) {
    type_ = type;
    index_ = index;
    cluster_ = cluster;
    lane_ = lane;
    global_.sub_block_id = lane;
    local_.async_ctx = AsyncCtx::make(PTO2TaskId::invalid(), &slab_);
    args_[SPMD_LOCAL_CONTEXT_INDEX] = reinterpret_cast<std::int64_t>(&local_);
    args_[SPMD_GLOBAL_CONTEXT_INDEX] = reinterpret_cast<std::int64_t>(&global_);
  }

  CoreType type() const { return type_; }
  int index() const { return index_; }  // among all cores: AICs first, then the AIVs of cluster 0, 1, ...
  int cluster() const { return cluster_; }
  int lane() const { return lane_; }  // 0 or 1 for AIV, 0 for AIC

  // Sets the arguments of a task; what differs between its blocks is set by begin_block.
  void load(const graph::Task& task) {
    if (task.packed) {
      std::memcpy(args_, task.words(), (std::size_t{task.tensor_count} + task.scalar_count) * 8);
    } else {
      const ChipTensor* tensors = task.tensors();
      std::int64_t* out = args_;
      for (int i = 0; i < task.tensor_count; ++i) *out++ = reinterpret_cast<std::int64_t>(&tensors[i]);
      const std::uint64_t* scalars = task.scalars();
      for (int i = 0; i < task.scalar_count; ++i) *out++ = static_cast<std::int64_t>(scalars[i]);
    }
    local_.block_num = task.block_count;
    kernels_ = task.kernels;
    local_.async_ctx.task_token = task.id;
  }
  void begin_block(std::int32_t block) {
    local_.block_idx = block;
    written_tiles_.begin_block();
    own_is_fresh_ = false;
  }

  std::int64_t* args() { return args_; }
  DeferredCompletionSlab& slab() { return slab_; }
  const LocalContext& local() const { return local_; }

  // Cores of those kinds (SimplerTaskCores) that the running task occupies, over all its blocks.
  std::uint32_t task_cores(std::uint32_t kinds) const {
    const int lanes = ((kinds & SIMPLER_TASK_CUBE_CORES) != 0 ? kernels_[0] >= 0 : 0) +
                      ((kinds & SIMPLER_TASK_VECTOR_CORES) != 0 ? (kernels_[1] >= 0) + (kernels_[2] >= 0) : 0);
    return static_cast<std::uint32_t>(lanes * local_.block_num);
  }

  // What the lanes of the running block share. A block of one lane has it alone.
  ClusterMemory& shared() {
    if (shared_ != nullptr) return *shared_;
    if (!own_is_fresh_) own_.begin_block();
    own_is_fresh_ = true;
    return own_;
  }
  // For a block of several lanes, from its placing until the core is released; nullptr: for a block of one lane.
  void share(ClusterMemory* memory) { shared_ = memory; }
  bool shares(const ClusterMemory* memory) const { return shared_ == memory; }

  // nullptr for an unknown kind, or if the system refuses the memory.
  void* tile_memory(std::uint32_t kind, std::uint64_t* bytes) {
    if (kind >= SIMPLER_TILE_MEMORY_COUNT) return nullptr;
    VirtualMemory& memory = tile_memory_[kind];
    if (memory.bytes() == 0 && !memory.reserve(kTileMemoryBytes[kind])) return nullptr;
    *bytes = memory.bytes();
    return memory.as<void>();
  }

  // What of the tile memory the running block has written.
  WrittenTiles& written_tiles() { return written_tiles_; }

 private:
  std::int64_t args_[KERNEL_ARG_SLOTS] = {};
  LocalContext local_{};
  GlobalContext global_{};
  DeferredCompletionSlab slab_{};
  const std::int16_t* kernels_ = nullptr;  // of the task that is loaded, whose record outlives its blocks
  CoreType type_ = CoreType::AIC;
  int index_ = 0;
  int cluster_ = 0;
  int lane_ = 0;
  ClusterMemory* shared_ = nullptr;  // the pool's, which owns this core too
  ClusterMemory own_;
  bool own_is_fresh_ = false;
  VirtualMemory tile_memory_[SIMPLER_TILE_MEMORY_COUNT];
  WrittenTiles written_tiles_;
};

}  // namespace simpler::executor
