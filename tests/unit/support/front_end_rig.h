// FrontEndRig: a front end with an executor, memory and kernels of its own, driven by an orchestration that is a closure.
//
// What      run(body) runs body(ops) as the orchestration, where ops submits through the table that user code calls. The
//           graph can be looked at afterwards. A kernel is a function of this program, by func id.
// Threads   One rig at a time in a process: the closure is found through a global.
#pragma once
#include <functional>
#include <memory>
#include <utility>

#include "base/virtual_memory.h"
#include "frontend/runtime.h"

namespace simpler::frontend::test {

// The calls of an orchestration.
class Ops {
 public:
  explicit Ops(PTO2Runtime* runtime) : runtime_(runtime) {}
  TaskOutputTensors submit(const MixedKernels& kernels, const CoreTaskArgs& args) const {
    return table().submit_task(runtime_, kernels, args);
  }
  TaskOutputTensors vector(std::int32_t kernel, const CoreTaskArgs& args) const {
    return submit({-1, kernel, -1}, args);
  }
  TaskOutputTensors dummy(const CoreTaskArgs& args) const { return table().submit_dummy_task(runtime_, args); }
  TaskOutputTensors alloc(const CoreTaskArgs& args) const { return table().alloc_tensors(runtime_, args); }
  void open(PTO2ScopeMode mode) const { table().scope_begin(runtime_, mode, __FILE__, __LINE__); }
  void close() const { table().scope_end(runtime_); }
  std::uint64_t get(const ChipTensor& tensor, std::initializer_list<std::uint32_t> index) const {
    return table().get_tensor_data(runtime_, tensor, static_cast<std::uint32_t>(index.size()), index.begin());
  }
  void set(const ChipTensor& tensor, std::initializer_list<std::uint32_t> index, std::uint64_t value) const {
    table().set_tensor_data(runtime_, tensor, static_cast<std::uint32_t>(index.size()), index.begin(), value);
  }
  bool failed() const { return table().is_fatal(runtime_); }

  // As rt_submit_graph.
  template <typename Body> SimplerGraphBlock graph(std::uint64_t key, const CoreTaskArgs& boundary, Body body) const {
    SimplerGraphBlock result = table().graph_begin(runtime_, key, boundary, true);
    if (!result.execute_block) return result;
    body();
    table().graph_end(runtime_);
    result.task_id = table().graph_commit(runtime_);
    return result;
  }
  const PTO2RuntimeOps& table() const { return *runtime_->ops; }
  PTO2Runtime* runtime() const { return runtime_; }

 private:
  PTO2Runtime* runtime_;
};

template <typename FrontEnd> class FrontEndRig {
 public:
  explicit FrontEndRig(int clusters = 2, int threads = 2) : executor_(clusters, threads), front_end_(executor_) {
    for (std::uint64_t& window : image_.rings.ring_task_window) window = 4096;
    for (std::uint64_t& heap : image_.rings.ring_heap) heap = kHeapBytes;
    for (std::uint64_t& pool : image_.rings.ring_dep_pool) pool = 65536;
    EXPECT_TRUE(heap_.reserve(graph::kRings * kHeapBytes));
    for (int r = 0; r < graph::kRings; ++r)
      image_.heap_base[r] = reinterpret_cast<std::uint64_t>(heap_.as<char>() + r * kHeapBytes);
  }

  // The code that ended the run; 0 if it succeeded. The text is in text().
  int run(std::function<void(const Ops&)> body) {
    orchestration_body() = std::move(body);
    front_end_.run(Orchestration::linked([](PTO2Runtime* runtime) { bound() = runtime; },
                                         [](const ChipTaskArgs&) { orchestration_body()(Ops(bound())); }),
                   kernels, image_);
    return image_.result.code;
  }
  const char* text() const { return image_.result.text; }
  // Entry tensors and ring sizes of the next runs.
  ChipTaskArgs& args() { return image_.args; }
  abi::RuntimeEnv& rings() { return image_.rings; }

  FrontEnd& front_end() { return front_end_; }
  const graph::Graph& graph() const { return front_end_.graph_; }

  executor::KernelTable kernels;

 private:
  static constexpr std::uint64_t kHeapBytes = 16 << 20;
  struct Open : FrontEnd {
    using FrontEnd::FrontEnd;
    using FrontEnd::graph_;
  };
  static std::function<void(const Ops&)>& orchestration_body() {
    static std::function<void(const Ops&)> body;
    return body;
  }
  static PTO2Runtime*& bound() {
    static PTO2Runtime* runtime = nullptr;
    return runtime;
  }

  VirtualMemory heap_;
  executor::Executor executor_;
  Open front_end_;
  abi::RunImage image_{};
};

}  // namespace simpler::frontend::test
