// Kept so that sources which include this name compile; everything is in the header below.
#pragma once
#include "pto_submit_types.h"
