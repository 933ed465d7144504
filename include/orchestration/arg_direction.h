// How tensor arguments are accessed: by tasks (TensorArgType) and in the signatures of callables (ArgDirection).
#pragma once
#include <cstdint>

enum class TensorArgType : int32_t {
  INPUT = 0,            // read
  OUTPUT = 1,           // memory that the runtime allocates for this task
  INOUT = 2,            // read and written
  OUTPUT_EXISTING = 3,  // written; waits for no earlier writer but the memory's creator
  NO_DEP = 4,           // not tracked
};

enum class ArgDirection : int32_t { SCALAR = 0, IN = 1, OUT = 2, INOUT = 3 };
