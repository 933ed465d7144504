// The two kinds of cores: AIC computes matrices, AIV vectors.
#pragma once
#include <cstdint>

enum class CoreType : int32_t { AIC = 0, AIV = 1 };
