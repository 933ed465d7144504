// CommSession: one rank of a group of processes on one host that share memory windows, for devices whose memory is this
// host's.
//
// What      A base session of all ranks; domains of some of its ranks, each with windows of its own; global domains, whose
//           members need no common session and find each other's windows by descriptors that the caller carries about.
//           Each gives a CommContext, which kernels take: the addresses of all ranks' windows.
// Waits     open() waits for nobody; alloc_windows, alloc_domain and release_domain wait until all ranks of theirs called
//           them, and fail as SharedWindows says.
// Threads   Calls on one session are serialised by the caller.
// Lifetime  The destructor leaves everything. Contexts and windows of a domain are valid until it is released, the others
//           until the session is destroyed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "host/shared_windows.h"
#include "platform_comm/comm_context.h"

namespace simpler::host {

// How a global domain's window is found by other processes. Layout shared with C and Python.
struct GlobalWindow {
  static constexpr std::uint32_t kVersion = 2;
  enum Profile : std::uint32_t { kSharedMemory = 1, kFabric = 2 };

  std::uint32_t version;
  std::uint32_t profile;
  std::uint32_t rank;
  std::uint32_t rank_count;
  std::uint64_t bytes;  // of the window
  std::uint32_t handle_bytes;
  std::uint32_t reserved;
  char handle[256];
};
static_assert(sizeof(GlobalWindow) == 288 && offsetof(GlobalWindow, bytes) == 16 &&
              offsetof(GlobalWindow, handle_bytes) == 24 && offsetof(GlobalWindow, handle) == 32);

struct CommRanks {
  const std::uint32_t* ids = nullptr;  // of the session's ranks, in the domain's order
  std::size_t count = 0;
  std::uint32_t own = 0;  // the caller's place among them
};

class CommSession {
 public:
  static constexpr int kMostRanks = SharedWindows::kMostMembers;
  static constexpr std::int64_t kWaitLimitMs = 120'000;
  static_assert(kMostRanks == COMM_MAX_RANK_NUM);

  // `path` names the session; all of its ranks have the same parent process.
  static Status open(int rank, int rank_count, const char* path, std::unique_ptr<CommSession>* session,
                     std::int64_t wait_limit_ms = kWaitLimitMs);
  ~CommSession();
  CommSession(const CommSession&) = delete;
  CommSession& operator=(const CommSession&) = delete;

  // In a forked child a session is none of its: the child only destroys it.
  Status require_own() const;

  // *context: the address of a CommContext.
  Status alloc_windows(std::size_t bytes, std::uint64_t* context);
  Status window_base(std::uint64_t* address) const;
  Status window_bytes(std::size_t* bytes) const;
  // The same windows, cut to a part, for some of the ranks. Local.
  Status derive(const CommRanks& ranks, std::size_t offset, std::size_t bytes, std::uint64_t* context);
  Status barrier() { return windows_->barrier(); }

  // The id is the same for all ranks of the domain, and new.
  Status alloc_domain(std::uint64_t id, const CommRanks& ranks, std::size_t bytes, std::uint64_t* context,
                      std::uint64_t* base);
  Status release_domain(std::uint64_t id);  // given back after a failure, too

  Status prepare_global(std::uint64_t id, std::uint32_t profile, std::uint32_t rank, std::uint32_t rank_count,
                        std::size_t bytes, GlobalWindow* own);
  // One for each rank, in any order.
  Status import_global(std::uint64_t id, const GlobalWindow* windows, std::size_t count, std::uint64_t* context,
                       std::uint64_t* base);
  Status release_global(std::uint64_t id);

 private:
  struct Domain {
    std::unique_ptr<SharedWindows> windows;
    std::unique_ptr<CommContext> context;
  };
  struct GlobalDomain {
    GlobalWindow own{};
    std::unique_ptr<SharedWindows> window;
    std::vector<std::unique_ptr<SharedWindows>> others;
    std::unique_ptr<CommContext> context;  // nullptr: not imported yet
  };

  CommSession(int rank, int rank_count, std::string path, std::int64_t wait_limit_ms);
  Status check(const CommRanks& ranks) const;
  Status require_windows() const;

  const int owner_pid_;
  const int rank_, rank_count_;
  const std::string path_, name_;
  const std::int64_t wait_limit_ms_;
  std::unique_ptr<SharedWindows> windows_;
  std::vector<std::unique_ptr<CommContext>> contexts_;
  std::map<std::uint64_t, Domain> domains_;
  std::map<std::uint64_t, GlobalDomain> global_domains_;
};

}  // namespace simpler::host
