// The graphs of ../kernels/graphs.cpp as OpenMP tasks with depend clauses. Prints one line per graph: name, tasks, best
// nanoseconds per task. Arguments: tasks, repeats. Threads: OMP_NUM_THREADS.
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr int kCells = 4096, kFan = 200, kChains = 16, kLeaves = 512;

struct alignas(64) Cell {
  float lanes[16];
};
Cell cells[kCells];
char outputs[1 << 20];  // stand for memory of a task's own: only their addresses matter

// A call that the compiler cannot see through, as a loaded kernel is.
void empty(void*) {}
void (*volatile kernel)(void*) = empty;

int independent(int count) {
  for (int n = 0; n < count; ++n) {
    char* output = &outputs[n % sizeof outputs];
#pragma omp task firstprivate(output) depend(in : cells[0]) depend(out : output[0])
    kernel(output);
  }
  return count;
}

int chains_of(int count, int chains) {
  for (int n = 0; n < count; ++n) {
    Cell* cell = &cells[n % chains];
#pragma omp task firstprivate(cell) depend(inout : cell[0])
    kernel(cell);
  }
  return count;
}
int chain(int count) { return chains_of(count, 1); }
int chains(int count) { return chains_of(count, kChains); }

int tree(int count) {
  int submitted = 0;
  while (submitted < count) {
    for (int node = 2 * kLeaves; --node > 0; ++submitted) {
      Cell* cell = &cells[node];
      if (node >= kLeaves) {
#pragma omp task firstprivate(cell) depend(out : cell[0])
        kernel(cell);
      } else {
        [[maybe_unused]] Cell* left = &cells[2 * node];  // only the clause below uses it
#pragma omp task firstprivate(cell) depend(in : left[0], left[1]) depend(out : cell[0])
        kernel(cell);
      }
    }
  }
  return submitted;
}

int fan_in_of(int count, int width) {
  int submitted = 0, first = 0;
  while (submitted < count) {
    if (first + width > kCells) first = 0;
    Cell* group = &cells[first];
    for (int n = 0; n < width; ++n, ++submitted) {
      Cell* cell = group + n;
#pragma omp task firstprivate(cell) depend(out : cell[0])
      kernel(cell);
    }
#pragma omp task firstprivate(group) depend(iterator(n = 0 : width), in : group[n])
    kernel(group);
    ++submitted;
    first += width;
  }
  return submitted;
}
int fan_in(int count) { return fan_in_of(count, kFan); }
int tiles(int count) { return fan_in_of(count, kCells); }

struct Graph {
  const char* name;
  int (*submit)(int count);
};
constexpr Graph kGraphs[] = {{"independent", independent}, {"chain", chain}, {"chains", chains}, {"tree", tree},
                             {"fan_in", fan_in},           {"tiles", tiles}};

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 100'000;
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 5;
  for (const Graph& graph : kGraphs) {
    double best = 1e30;
    int tasks = 0;
    for (int n = 0; n < repeats; ++n) {
      const auto start = std::chrono::steady_clock::now();
#pragma omp parallel
#pragma omp single
      tasks = graph.submit(count);
      const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
      best = std::min(best, took.count() / tasks);
    }
    std::printf("%s %d %.1f\n", graph.name, tasks, best);
  }
}
