// What a submission asks for besides arguments: which kernels run on which lanes, how many blocks, and the scope's mode.
#pragma once
#include <cstdint>

#include "pto_task_id.h"

inline constexpr int32_t INVALID_KERNEL_ID = -1;

// The kernels of one block: any of the matrix lane and the two vector lanes of a cluster. Ids are func_ids of the callable.
struct MixedKernels {
  int32_t aic_kernel_id = INVALID_KERNEL_ID;
  int32_t aiv0_kernel_id = INVALID_KERNEL_ID;
  int32_t aiv1_kernel_id = INVALID_KERNEL_ID;

  // Bit 0: AIC, bit 1: AIV0, bit 2: AIV1.
  constexpr uint8_t to_active_mask() const {
    return static_cast<uint8_t>((aic_kernel_id >= 0 ? 1 : 0) | (aiv0_kernel_id >= 0 ? 2 : 0) |
                                (aiv1_kernel_id >= 0 ? 4 : 0));
  }
};

// AUTO finds dependencies from tensor accesses; MANUAL leaves all ordering to explicit dependencies.
enum class PTO2ScopeMode : uint8_t { AUTO = 0, MANUAL = 1 };

// What an edge means: WAIT orders; RETAIN keeps the producer's slot and memory until the consumer finished.
enum DepFlags : uint8_t { DEP_NONE = 0, DEP_WAIT = 1, DEP_RETAIN = 2 };
inline constexpr DepFlags operator|(DepFlags a, DepFlags b) {
  return static_cast<DepFlags>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}
inline constexpr DepFlags operator&(DepFlags a, DepFlags b) {
  return static_cast<DepFlags>(static_cast<uint8_t>(a) & static_cast<uint8_t>(b));
}
inline DepFlags& operator|=(DepFlags& a, DepFlags b) { return a = a | b; }

enum class PredicateOp : uint8_t { NONE = 0, EQ = 1, NE = 2, GT = 3, LT = 4, GE = 5, LE = 6 };

enum AsyncEngine {
  ASYNC_ENGINE_SDMA = 0,
  ASYNC_ENGINE_ROCE = 1,
  ASYNC_ENGINE_URMA = 2,
  ASYNC_ENGINE_CCU = 3,
  NUM_ASYNC_ENGINES = 4
};
enum class CompletionType : int32_t { COUNTER = 0 };
