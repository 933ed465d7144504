#include "frontend/orchestration.h"

#include "base/log.h"

namespace simpler::frontend {

Status Orchestration::load(const void* code, std::size_t bytes, const std::string& entry_name,
                           const std::string& config_name, Orchestration* orchestration) {
  Orchestration fresh;
  if (Status status = CodeImage::load(code, bytes, "simpler-orchestration-" + entry_name, &fresh.image_); !status.ok())
    return status;
  if (fresh.image_.symbol("simpler_uses_orchestration_api") != nullptr) {
    return fail(
        ErrorKind::kDevice,
        format("the orchestration of \"%s\" is written against orchestration_api.h, the oldest interface of "
               "host_build_graph, which compiles and does not run: submit its tasks with pto_orchestration_api.h",
               entry_name.c_str()));
  }
  fresh.bind_ = reinterpret_cast<decltype(fresh.bind_)>(fresh.image_.symbol("framework_bind_runtime"));
  if (fresh.bind_ == nullptr) {
    return fail(ErrorKind::kDevice,
                "the orchestration does not export framework_bind_runtime: it must include pto_orchestration_api.h");
  }
  fresh.entry_ = reinterpret_cast<decltype(fresh.entry_)>(fresh.image_.symbol(entry_name.c_str()));
  if (fresh.entry_ == nullptr) {
    return fail(
        ErrorKind::kDevice,
        format("the orchestration does not export its entry function \"%s\": define it extern \"C\" with default "
               "visibility, or correct function_name",
               entry_name.c_str()));
  }
  if (!config_name.empty()) {
    fresh.config_ = reinterpret_cast<decltype(fresh.config_)>(fresh.image_.symbol(config_name.c_str()));
    if (fresh.config_ == nullptr) {
      log::host(log::Level::kWarn, __func__,
                "the orchestration does not export \"%s\": its argument count is not checked", config_name.c_str());
    }
  }
  *orchestration = std::move(fresh);
  return Status();
}

}  // namespace simpler::frontend
