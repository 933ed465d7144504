// The CPU tile library: tiles, global tensors and the instructions on them, for kernels that run on the simulator.
// Header only, C++17, needs nothing included before it. User guide: docs/tile.md.
#pragma once

#include "detail/compare.hpp"
#include "detail/convert.hpp"
#include "detail/copy.hpp"
#include "detail/gather.hpp"
#include "detail/matmul.hpp"
#include "detail/pipe.hpp"
#include "detail/print.hpp"
#include "detail/quantize.hpp"
#include "detail/rearrange.hpp"
#include "detail/reduce.hpp"
#include "detail/scaled_product.hpp"
#include "detail/sort.hpp"
#include "detail/sync_all.hpp"
#include "detail/vector.hpp"
