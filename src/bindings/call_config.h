// CallConfig as a Python object: the wire struct and the one attribute that stays on this side.
#pragma once
#include "abi/call_config.h"

namespace simpler::bindings {

struct PyCallConfig {
  abi::CallConfig wire{};
  int block_dim = 0;  // older programs set it; a run takes the whole device, so it has no effect
};

}  // namespace simpler::bindings
