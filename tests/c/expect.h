/* What the programs of this folder check with: a condition that does not hold is told, with the last failure, and counted. */
#include <stdio.h>

static int failures = 0;
#define EXPECT(condition)                                                                              \
  do {                                                                                                 \
    if (!(condition)) {                                                                                \
      ++failures;                                                                                      \
      fprintf(stderr, "line %d: %s does not hold (%s)\n", __LINE__, #condition, simpler_last_error()); \
    }                                                                                                  \
  } while (0)
