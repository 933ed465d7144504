// Empty fall-backs for the core compiler's qualifiers, where neither that compiler nor a tile library defined them.
// Include after <pto/pto-inst.hpp> in kernels for the board, so that the real ones win.
#pragma once
#ifndef __gm__
#define __gm__
#endif
#ifndef __aicore__
#define __aicore__
#endif
