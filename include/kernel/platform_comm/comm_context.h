// CommContext: what a kernel needs to reach the memory windows of the other ranks of a communication domain.
// The address of `local` in rank r's window is windowsIn[r] + (local - windowsIn[rankId]).
#pragma once
#include <cstddef>
#include <cstdint>

constexpr int COMM_MAX_RANK_NUM = 64;

struct CommContext {
  uint64_t workSpace;
  uint64_t workSpaceSize;  // bytes
  uint32_t rankId;
  uint32_t rankNum;
  uint64_t winSize;  // bytes of each window
  uint64_t windowsIn[COMM_MAX_RANK_NUM];
  uint64_t windowsOut[COMM_MAX_RANK_NUM];
};
static_assert(sizeof(CommContext) == 1056 && offsetof(CommContext, windowsIn) == 32 &&
                  offsetof(CommContext, windowsOut) == 544,
              "shared with the tile library");
