// Element types, under the name that kernels include.
#pragma once

#include "../detail/element.hpp"
