// Recovery: what is still asked of a device in doubt.
#pragma once
#include "host/device.h"

namespace simpler::host {

// Waits, for a limited time, for what the device still does, then marks it Unusable, whatever came of that.
void give_up(Device& device, const std::string& why, std::int32_t limit_ms);

// Resets the device by force and proves that it works again: a fresh stream and fresh memory can be had. Up to `attempts`
// times, until one succeeds. Afterwards nothing is left on the device, and no reference to it, either way.
Status force_reset(Device& device, int attempts, std::int32_t limit_ms);

}  // namespace simpler::host
