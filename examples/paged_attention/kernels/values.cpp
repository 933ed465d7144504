// part = weights x values, on a matrix core. Tensors: weights [kQueries][kTokens], values [kTokens][kFeatures] (read), part
// [kQueries][kFeatures] (written).
#include "page.h"

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  multiply<Memory<kTokens, kFeatures>, Loaded<kTokens, kFeatures>>(args);
}
