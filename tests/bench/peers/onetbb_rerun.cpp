// The graph of ../kernels/replays.cpp as a oneTBB flow graph that is built once and run again and again: each run is one
// use. Prints one line: name, tasks, best nanoseconds per task. Arguments: tasks in all, repeats, threads.
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>

namespace {

namespace flow = oneapi::tbb::flow;
using Node = flow::continue_node<flow::continue_msg>;

constexpr int kWidth = 32, kStages = 9, kJoined = 4;  // as there

void empty(void*) {}
void (*volatile kernel)(void*) = empty;

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 16'000;
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 5;
  const int threads = argc > 3 ? std::atoi(argv[3]) : 2;
  oneapi::tbb::global_control limit(oneapi::tbb::global_control::max_allowed_parallelism, threads);
  flow::graph graph;
  std::deque<Node> nodes;
  const auto add = [&] {
    nodes.emplace_back(graph, [](const flow::continue_msg& message) {
      kernel(nullptr);
      return message;
    });
    return static_cast<int>(nodes.size()) - 1;
  };
  const auto edge = [&](int from, int to) { flow::make_edge(nodes[from], nodes[to]); };
  for (int stage = 0; stage < kStages; ++stage) {
    for (int n = 0; n < kWidth; ++n) {
      const int node = add();
      if (stage == 0) continue;
      edge(node - kWidth, node);
      edge((stage - 1) * kWidth + (n + stage) % kWidth, node);
    }
  }
  const int last_stage = (kStages - 1) * kWidth, joins = kStages * kWidth;
  for (int n = 0; n < kWidth / kJoined; ++n) {
    const int node = add();
    for (int k = 0; k < kJoined; ++k) edge(last_stage + n * kJoined + k, node);
  }
  const int last = add();
  for (int n = 0; n < kWidth / kJoined; ++n) edge(joins + n, last);

  const int uses = std::max(1, count / static_cast<int>(nodes.size()));
  double best = 1e30;
  for (int r = 0; r < repeats; ++r) {
    const auto start = std::chrono::steady_clock::now();
    for (int use = 0; use < uses; ++use) {
      for (int n = 0; n < kWidth; ++n) nodes[static_cast<std::size_t>(n)].try_put(flow::continue_msg());
      graph.wait_for_all();
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count() / (static_cast<double>(nodes.size()) * uses));
  }
  std::printf("layer %zu %.1f\n", nodes.size(), best);
}
