// Tile and GlobalTensor, under the name that kernels include.
#pragma once

#include "../pto-inst.hpp"
