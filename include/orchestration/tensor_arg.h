// Kept so that sources of the older interface which include this name compile; everything is in the header below.
#pragma once
#include "task_args.h"
