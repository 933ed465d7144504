// A header of the chip's library that kernels include by this path; here everything is in one library for all chips.
#pragma once

#include "../../pto-inst.hpp"
