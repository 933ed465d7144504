// The functions of host/simpler_comm.h: checks of what a C caller may get wrong, then sessions of host/comm.h.
#include "host/simpler_comm.h"

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "c_api/context.h"
#include "host/comm.h"

namespace simpler::c_api {
namespace {

using host::CommSession;
using host::DeviceRunner;
using host::GlobalWindow;

static_assert(SIMPLER_COMM_MAX_RANKS == CommSession::kMostRanks);
static_assert(SIMPLER_GLOBAL_DOMAIN_VERSION == GlobalWindow::kVersion &&
              int{SIMPLER_COMM_PROFILE_SHARED_MEMORY} == int{GlobalWindow::kSharedMemory} &&
              int{SIMPLER_COMM_PROFILE_FABRIC} == int{GlobalWindow::kFabric});
static_assert(sizeof(SimplerGlobalDomainDescriptor) == sizeof(GlobalWindow) &&
              offsetof(SimplerGlobalDomainDescriptor, mapping_size) == offsetof(GlobalWindow, bytes) &&
              offsetof(SimplerGlobalDomainDescriptor, handle) == offsetof(GlobalWindow, handle));

// The streams that create_comm_stream_ctx gave, and whether their devices' memory is this host's: comm_init is told
// nothing else about the device.
class CommStreams {
 public:
  static void add(void* stream, bool host_memory) {
    const std::lock_guard lock(mutex());
    all()[stream] = host_memory;
  }
  static void remove(void* stream) {
    const std::lock_guard lock(mutex());
    all().erase(stream);
  }
  // false: there is no such stream.
  static bool find(void* stream, bool* host_memory) {
    const std::lock_guard lock(mutex());
    const auto found = all().find(stream);
    if (found == all().end()) return false;
    *host_memory = found->second;
    return true;
  }

 private:
  static std::mutex& mutex() {
    static std::mutex& mutex = *new std::mutex;
    return mutex;
  }
  static std::map<void*, bool>& all() {
    static std::map<void*, bool>& all = *new std::map<void*, bool>;
    return all;
  }
};

CommSession* session_of(SimplerCommSession* session) { return reinterpret_cast<CommSession*>(session); }

template <class Call> int with_session(SimplerCommSession* session, Call call) noexcept {
  return guarded(-1, [&]() -> int {
    if (session == nullptr) return refuse(ErrorKind::kValue, "the communication session is null");
    if (Status status = session_of(session)->require_own(); !status.ok()) return note(std::move(status));
    return code_of(call(*session_of(session)));
  });
}

Status no_place() { return fail(ErrorKind::kValue, "an argument that takes a result, or an array, is null"); }

}  // namespace
}  // namespace simpler::c_api

using namespace simpler;
using namespace simpler::c_api;

extern "C" {

// ---- streams ----

int ensure_acl_ready_ctx(void* context, int device) {
  return with_context(context, [&](Context& c) -> int {
    if (c.simulated()) return 0;
    return with_runner(context, [&](Context&, DeviceRunner& runner) -> int {
      if (device != runner.device_id()) {
        return refuse(ErrorKind::kValue,
                      format("device %d is asked for; the context has device %d", device, runner.device_id()));
      }
      return code_of(runner.prepare_acl());
    });
  });
}

void* create_comm_stream_ctx(void* context) {
  driver::Stream* stream = nullptr;
  with_context(context, [&](Context& c) -> int {
    if (c.simulated()) return 0;
    return with_runner(context, [&](Context&, DeviceRunner& runner) -> int {
      if (Status status = runner.create_stream(&stream); !status.ok()) return note(std::move(status));
      CommStreams::add(stream, runner.host_memory());
      return 0;
    });
  });
  return stream;
}

int destroy_comm_stream_ctx(void* context, void* stream) {
  return with_context(context, [&](Context& c) -> int {
    if (stream == nullptr || c.simulated()) return 0;
    return with_runner(context, [&](Context&, DeviceRunner& runner) -> int {
      Status status = runner.destroy_stream(static_cast<driver::Stream*>(stream));
      if (status.kind() != ErrorKind::kValue) CommStreams::remove(stream);  // else it is another context's
      return code_of(std::move(status));
    });
  });
}

// ---- sessions ----

SimplerCommSession* comm_init(int rank, int rank_count, void* stream, const char* path) {
  std::unique_ptr<CommSession> session;
  guarded(-1, [&]() -> int {
    bool host_memory = true;
    if (stream != nullptr && !CommStreams::find(stream, &host_memory))
      return refuse(ErrorKind::kValue, "create_comm_stream_ctx did not return that stream, or it is destroyed");
    if (!host_memory) {
      return note(
          Status(ErrorKind::kDevice, SIMPLER_ERR_UNSUPPORTED,
                 "communication between boards is not supported yet: it needs the vendor's HCCL. Use a2a3sim or "
                 "a5sim, or exchange data through the host with copy_from_device_ctx and copy_to_device_ctx"));
    }
    return code_of(CommSession::open(rank, rank_count, path, &session));
  });
  return reinterpret_cast<SimplerCommSession*>(session.release());
}

int comm_alloc_windows(SimplerCommSession* session, size_t bytes, uint64_t* device_context) {
  return with_session(session, [&](CommSession& s) {
    return device_context == nullptr ? no_place() : s.alloc_windows(bytes, device_context);
  });
}

int comm_get_local_window_base(SimplerCommSession* session, uint64_t* address) {
  return with_session(session,
                      [&](CommSession& s) { return address == nullptr ? no_place() : s.window_base(address); });
}

int comm_get_window_size(SimplerCommSession* session, size_t* bytes) {
  return with_session(session, [&](CommSession& s) { return bytes == nullptr ? no_place() : s.window_bytes(bytes); });
}

int comm_derive_context(SimplerCommSession* session, const uint32_t* rank_ids, size_t rank_count, uint32_t domain_rank,
                        size_t window_offset, size_t window_bytes, uint64_t* device_context) {
  return with_session(session, [&](CommSession& s) {
    return device_context == nullptr
               ? no_place()
               : s.derive({rank_ids, rank_count, domain_rank}, window_offset, window_bytes, device_context);
  });
}

int comm_barrier(SimplerCommSession* session) {
  return with_session(session, [](CommSession& s) { return s.barrier(); });
}

int comm_destroy(SimplerCommSession* session) {
  return guarded(-1, [&] {
    delete session_of(session);
    return 0;
  });
}

// ---- domains ----

int comm_alloc_domain_windows(SimplerCommSession* session, uint64_t allocation_id, const uint32_t* rank_ids,
                              size_t rank_count, uint32_t domain_rank, size_t window_bytes, uint64_t* device_context,
                              uint64_t* local_window_base) {
  return with_session(session, [&](CommSession& s) {
    return device_context == nullptr || local_window_base == nullptr
               ? no_place()
               : s.alloc_domain(allocation_id, {rank_ids, rank_count, domain_rank}, window_bytes, device_context,
                                local_window_base);
  });
}

int comm_release_domain_windows(SimplerCommSession* session, uint64_t allocation_id) {
  return with_session(session, [&](CommSession& s) { return s.release_domain(allocation_id); });
}

// ---- global domains ----

int comm_global_domain_prepare(SimplerCommSession* session, uint64_t domain_id, uint32_t profile, uint32_t domain_rank,
                               uint32_t rank_count, size_t window_bytes, SimplerGlobalDomainDescriptor* descriptor) {
  return with_session(session, [&](CommSession& s) -> Status {
    if (descriptor == nullptr) return no_place();
    if (profile == SIMPLER_COMM_PROFILE_FABRIC) {
      return Status(ErrorKind::kDevice, SIMPLER_ERR_UNSUPPORTED,
                    "global domains over a board's fabric are not supported yet: use the profile of shared memory");
    }
    return s.prepare_global(domain_id, profile, domain_rank, rank_count, window_bytes,
                            reinterpret_cast<GlobalWindow*>(descriptor));
  });
}

int comm_global_domain_import(SimplerCommSession* session, uint64_t domain_id,
                              const SimplerGlobalDomainDescriptor* descriptors, size_t count, uint64_t* device_context,
                              uint64_t* local_window_base) {
  return with_session(session, [&](CommSession& s) {
    return descriptors == nullptr || device_context == nullptr || local_window_base == nullptr
               ? no_place()
               : s.import_global(domain_id, reinterpret_cast<const GlobalWindow*>(descriptors), count, device_context,
                                 local_window_base);
  });
}

int comm_global_domain_release(SimplerCommSession* session, uint64_t domain_id) {
  return with_session(session, [&](CommSession& s) { return s.release_global(domain_id); });
}

// ---- workspaces of DMA engines ----

uint32_t comm_dma_workspace_supported_mask(void* context) {
  return static_cast<uint32_t>(
      fact_of(context, [](DeviceRunner& runner) { return std::uint64_t{runner.dma_engines()}; }));
}

int comm_dma_workspace_provision(void* context, uint32_t mask, uint64_t addresses[2]) {
  return with_runner(context, [&](Context&, DeviceRunner& runner) -> int {
    if (addresses == nullptr) return note(no_place());
    if (const int code = simpler_provision_dma_workspace(context, mask); code != 0) return code;
    for (int engine = 0; engine < 2; ++engine) addresses[engine] = runner.dma_address(engine);
    return 0;
  });
}

int comm_dma_workspace_release(void* context) {
  return with_runner(context, [](Context&, DeviceRunner& runner) { return code_of(runner.release_dma()); });
}

}  // extern "C"
