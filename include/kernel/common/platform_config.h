// Constants of the device that kernels may compile in.
#pragma once

// Ticks per second of the system counter.
#if defined(SIMPLER_ARCH_A5)
#define PLATFORM_PROF_SYS_CNT_FREQ 1000000000ULL
#else
#define PLATFORM_PROF_SYS_CNT_FREQ 50000000ULL
#endif
