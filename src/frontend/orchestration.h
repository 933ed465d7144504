// Orchestration: a loaded orchestration shared object with its entry points.
//
// Lifetime  Unloads its code when destroyed: no run may use it.
// Threads   One at a time.
#pragma once
#include <string>

#include "base/code_image.h"
#include "base/status.h"
#include "pto_orchestration_api.h"

namespace simpler::frontend {

class Orchestration {
 public:
  // `config_name` may be empty, and a name that is not exported is no error: then nothing is checked.
  static Status load(const void* code, std::size_t bytes, const std::string& entry_name, const std::string& config_name,
                     Orchestration* orchestration);

  // One that is part of this program: for tests of the runtimes.
  static Orchestration linked(void (*bind)(PTO2Runtime*), void (*entry)(const ChipTaskArgs&)) {
    Orchestration orchestration;
    orchestration.bind_ = bind;
    orchestration.entry_ = entry;
    return orchestration;
  }

  bool loaded() const { return entry_ != nullptr; }
  void bind(PTO2Runtime* runtime) const { bind_(runtime); }
  // Arguments that the orchestration wants at least; 0 if it does not say.
  int expected_arg_count(const ChipTaskArgs& args) const {
    return config_ != nullptr ? config_(args).expected_arg_count : 0;
  }
  void enter(const ChipTaskArgs& args) const { entry_(args); }

 private:
  CodeImage image_;
  void (*bind_)(PTO2Runtime*) = nullptr;
  void (*entry_)(const ChipTaskArgs&) = nullptr;
  PTO2OrchestrationConfig (*config_)(const ChipTaskArgs&) = nullptr;
};

}  // namespace simpler::frontend
