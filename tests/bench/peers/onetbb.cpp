// The graphs of ../kernels/graphs.cpp as a oneTBB flow graph, which is told its edges and infers none. Building the
// graph is part of the time. Prints one line per graph: name, tasks, best nanoseconds per task. Arguments: tasks,
// repeats, threads.
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

constexpr int kFan = 200, kChains = 16, kLeaves = 512, kTiles = 4096;

void empty(void*) {}
void (*volatile kernel)(void*) = empty;

// A graph under construction. Nodes without a producer are started by start().
struct Graph {
  flow::graph graph;
  std::deque<Node> nodes;
  std::deque<int> roots;

  int add() {
    nodes.emplace_back(graph, [](const flow::continue_msg& message) {
      kernel(nullptr);
      return message;
    });
    return static_cast<int>(nodes.size()) - 1;
  }
  int add_root() {
    roots.push_back(add());
    return roots.back();
  }
  void edge(int from, int to) { flow::make_edge(nodes[from], nodes[to]); }
  void run() {
    for (int root : roots) nodes[root].try_put(flow::continue_msg());
    graph.wait_for_all();
  }
};

void independent(Graph& graph, int count) {
  for (int n = 0; n < count; ++n) graph.add_root();
}

void chains_of(Graph& graph, int count, int chains) {
  for (int n = 0; n < count; ++n) {
    if (n < chains)
      graph.add_root();
    else
      graph.edge(n - chains, graph.add());
  }
}
void chain(Graph& graph, int count) { chains_of(graph, count, 1); }
void chains(Graph& graph, int count) { chains_of(graph, count, kChains); }

void tree(Graph& graph, int count) {
  int places[2 * kLeaves];
  while (static_cast<int>(graph.nodes.size()) < count) {
    for (int node = 2 * kLeaves; --node > 0;) {
      if (node >= kLeaves) {
        places[node] = graph.add_root();
      } else {
        places[node] = graph.add();
        graph.edge(places[2 * node], places[node]);
        graph.edge(places[2 * node + 1], places[node]);
      }
    }
  }
}

void fan_in_of(Graph& graph, int count, int width) {
  while (static_cast<int>(graph.nodes.size()) < count) {
    const int first = static_cast<int>(graph.nodes.size());
    for (int n = 0; n < width; ++n) graph.add_root();
    const int reader = graph.add();
    for (int n = 0; n < width; ++n) graph.edge(first + n, reader);
  }
}
void fan_in(Graph& graph, int count) { fan_in_of(graph, count, kFan); }
void tiles(Graph& graph, int count) { fan_in_of(graph, count, kTiles); }

struct Row {
  const char* name;
  void (*build)(Graph& graph, int count);
};
constexpr Row kGraphs[] = {{"independent", independent}, {"chain", chain}, {"chains", chains}, {"tree", tree},
                           {"fan_in", fan_in},           {"tiles", tiles}};

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 100'000;
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 5;
  const int threads = argc > 3 ? std::atoi(argv[3]) : 2;
  oneapi::tbb::global_control limit(oneapi::tbb::global_control::max_allowed_parallelism, threads);
  for (const Row& row : kGraphs) {
    double best = 1e30;
    std::size_t tasks = 0;
    for (int n = 0; n < repeats; ++n) {
      Graph graph;
      const auto start = std::chrono::steady_clock::now();
      row.build(graph, count);
      graph.run();
      const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
      tasks = graph.nodes.size();
      best = std::min(best, took.count() / static_cast<double>(tasks));
    }
    std::printf("%s %zu %.1f\n", row.name, tasks, best);
  }
}
