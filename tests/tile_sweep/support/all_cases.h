// The list of all cases of an element type.
#pragma once

#include "tile_sweep/support/sweep_cases.h"

namespace tile_test {

// ---- all cases of an element type -----------------------------------------------------------------------------------

template <class T, class L> void register_layout() {
  const auto add = [](const char* instruction, void (*run)(Random&)) {
    sweep_cases().push_back({instruction, name_of_type<T>(), L::name, run});
  };
#define ADD_TILES(NAME, COUNT) add(#NAME, sweep_tiles<NAME##Sweep, T, L, COUNT>)
#define ADD_TWO(OP)    \
  ADD_TILES(T##OP, 2); \
  add("T" #OP "S", sweep_scalar<T##OP##SSweep, T, L>)
#define ADD_FORMS(OP)                                                        \
  ADD_TWO(OP);                                                               \
  add("TROWEXPAND" #OP, sweep_broadcast<TROWEXPAND##OP##Sweep, T, L, true>); \
  add("TCOLEXPAND" #OP, sweep_broadcast<TCOLEXPAND##OP##Sweep, T, L, false>)
#define ADD_PARTIAL(NAME) add(#NAME, sweep_partial<NAME##Sweep, T, L>)
#define ADD_FILL(NAME) add(#NAME, sweep_##NAME<T, L>)
#define ADD_REDUCTION(NAME)                                    \
  add("TROW" #NAME, sweep_reduction<NAME##Sweep, T, L, true>); \
  add("TCOL" #NAME, sweep_reduction<NAME##Sweep, T, L, false>)
  ADD_FORMS(ADD);
  ADD_FORMS(SUB);
  ADD_FORMS(MUL);
  ADD_FORMS(DIV);
  ADD_FORMS(MAX);
  ADD_FORMS(MIN);
  ADD_TWO(FMOD);
  ADD_TWO(REM);
  ADD_TILES(TPRELU, 2);
  add("TLRELU", sweep_scalar<TLRELUSweep, T, L>);
  ADD_TILES(TADDC, 3);
  ADD_TILES(TSUBC, 3);
  add("TADDSC", sweep_middle_scalar<TADDSCSweep, T, L>);
  add("TSUBSC", sweep_middle_scalar<TSUBSCSweep, T, L>);
  ADD_TILES(TABS, 1);
  ADD_TILES(TNEG, 1);
  ADD_TILES(TRELU, 1);
  if constexpr (kFloating<T>) {
    ADD_TILES(TEXP, 1);
    ADD_TILES(TLOG, 1);
    ADD_TILES(TSQRT, 1);
    ADD_TILES(TRSQRT, 1);
    ADD_TILES(TRECIP, 1);
    add("TROWEXPANDEXPDIF", sweep_broadcast<TROWEXPANDEXPDIFSweep, T, L, true>);
    add("TCOLEXPANDEXPDIF", sweep_broadcast<TCOLEXPANDEXPDIFSweep, T, L, false>);
  } else {
    ADD_TWO(AND);
    ADD_TWO(OR);
    ADD_TWO(XOR);
    ADD_TWO(SHL);
    ADD_TWO(SHR);
    ADD_TILES(TNOT, 1);
  }
  ADD_PARTIAL(TPARTADD);
  ADD_PARTIAL(TPARTMUL);
  ADD_PARTIAL(TPARTMAX);
  ADD_PARTIAL(TPARTMIN);
  ADD_FILL(TEXPANDS);
  ADD_FILL(TROWEXPAND);
  ADD_FILL(TCOLEXPAND);
  ADD_FILL(TCI);
  ADD_FILL(TTRI);
  ADD_REDUCTION(SUM);
  ADD_REDUCTION(PROD);
  ADD_REDUCTION(MAX);
  ADD_REDUCTION(MIN);
  add("TROWARGMAX", sweep_index<T, L, true, true>);
  add("TROWARGMIN", sweep_index<T, L, true, false>);
  add("TCOLARGMAX", sweep_index<T, L, false, true>);
  add("TCOLARGMIN", sweep_index<T, L, false, false>);
  add("TCMP", sweep_compare<T, L, false>);
  add("TCMPS", sweep_compare<T, L, true>);
  add("TSEL", sweep_select<T, L, false>);
  add("TSELS", sweep_select<T, L, true>);
#undef ADD_TILES
#undef ADD_TWO
#undef ADD_FORMS
#undef ADD_PARTIAL
#undef ADD_FILL
#undef ADD_REDUCTION
}
template <class T> bool register_cases() {
  register_layout<T, RowMajorLayout>();
  register_layout<T, ColMajorLayout>();
  register_layout<T, NzLayout>();
  if constexpr (std::is_same_v<T, float>) {
    register_layout<T, ZnLayout>();
    register_layout<T, ZzLayout>();
    register_layout<T, NnLayout>();
  }
  return true;
}

}  // namespace tile_test
