// Asynchronous copies. On the simulator a copy is complete when its call returns, so events are always ready.
#pragma once

#include "../comm_types.hpp"

namespace pto {
namespace comm {

namespace sdma {
// How a copy engine is set up; accepted as it is.
struct SdmaBaseConfig {
  uint64_t block_bytes = 1024 * 1024;
  uint64_t comm_block_offset = 0;
  uint32_t queue_num = 1;
};
}  // namespace sdma

// The queue that asynchronous copies go through: there is none here.
struct AsyncSession {
  bool valid = true;
};

struct AsyncEvent {
  uint64_t handle = 0;  // 0: nothing to wait for

  bool valid() const { return handle != 0; }
  template <class Session> bool Wait(const Session&) const { return true; }
  template <class Session> bool Test(const Session&) const { return true; }
};

}  // namespace comm
}  // namespace pto
