// TPipe and its instructions, under the name that kernels include.
#pragma once

#include "../pto-inst.hpp"
