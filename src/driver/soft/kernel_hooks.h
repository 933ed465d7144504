// What the software device hands to freshly loaded kernel code: access to the simulated core that it runs on.
#pragma once
#include "base/code_image.h"

namespace simpler::driver {

// Calls the registration functions that the image exports; images without them need no hooks.
void register_kernel_hooks(const CodeImage& image);

}  // namespace simpler::driver
