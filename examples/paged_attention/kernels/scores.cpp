// scores = queries x keys^T, on a matrix core. Tensors: queries [kQueries][kFeatures], keys [kTokens][kFeatures] (read),
// scores [kQueries][kTokens] (written).
#include "page.h"

using namespace pto;

// keys^T: its columns are the rows of the page.
using Keys =
    GlobalTensor<float, Shape<1, 1, 1, kFeatures, kTokens>, pto::Stride<1, 1, 1, 1, kFeatures>, pto::Layout::DN>;
using Transposed =
    Tile<TileType::Mat, float, kFeatures, kTokens, BLayout::RowMajor, kFeatures, kTokens, SLayout::ColMajor>;

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) { multiply<Keys, Transposed>(args); }
