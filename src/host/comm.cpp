#include "host/comm.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

#include "base/hash.h"

namespace simpler::host {
namespace {

constexpr const char* kGlobalPrefix = "/simpler_g";

// What a GlobalWindow's handle holds on one host.
struct LocalHandle {
  char name[64];
  std::uint64_t key;
};
static_assert(sizeof(LocalHandle) <= sizeof(GlobalWindow::handle));

// The ranks that this process has open, so that a second one of the same is told at once, and does not wait for others.
class OpenRanks {
 public:
  static bool add(const std::string& path, int rank) {
    const std::lock_guard lock(mutex_);
    return ranks().emplace(getpid(), path, rank).second;
  }
  static void remove(const std::string& path, int rank) {
    const std::lock_guard lock(mutex_);
    ranks().erase({getpid(), path, rank});
  }

 private:
  using Ranks = std::set<std::tuple<pid_t, std::string, int>>;  // a forked child does not have its parent's
  static Ranks& ranks() {
    static Ranks& all = *new Ranks;
    return all;
  }
  static inline std::mutex mutex_;
};

Status check_rank_count(std::size_t count) {
  if (count >= 1 && count <= CommSession::kMostRanks) return Status();
  return fail(ErrorKind::kValue, format("a communication group of %zu ranks is asked for; allowed: 1 to %d", count,
                                        CommSession::kMostRanks));
}

std::unique_ptr<CommContext> make_context(std::uint32_t rank, std::size_t count, std::size_t bytes) {
  auto context = std::make_unique<CommContext>(CommContext{});  // no workspace: that is for DMA engines
  context->rankId = rank;
  context->rankNum = static_cast<std::uint32_t>(count);
  context->winSize = bytes;
  return context;
}
void set_window(CommContext& context, std::size_t rank, std::uint64_t address) {
  context.windowsIn[rank] = context.windowsOut[rank] = address;
}
std::uint64_t address_of(const CommContext& context) { return reinterpret_cast<std::uint64_t>(&context); }

}  // namespace

// ---- the session --------------------------------------------------------------------------------------------------------

CommSession::CommSession(int rank, int rank_count, std::string path, std::int64_t wait_limit_ms)
    : owner_pid_(getpid()),
      rank_(rank),
      rank_count_(rank_count),
      path_(std::move(path)),
      name_(format("/simpler_%08x_%08x", static_cast<unsigned>(getppid()),
                   static_cast<unsigned>(fnv1a(path_.data(), path_.size()) >> 32))),
      wait_limit_ms_(wait_limit_ms) {}

CommSession::~CommSession() { OpenRanks::remove(path_, rank_); }

Status CommSession::open(int rank, int rank_count, const char* path, std::unique_ptr<CommSession>* session,
                         std::int64_t wait_limit_ms) {
  if (path == nullptr || *path == '\0')
    return fail(ErrorKind::kValue, "the path that names a communication session is empty");
  if (Status status = check_rank_count(rank_count < 0 ? 0 : static_cast<std::size_t>(rank_count)); !status.ok())
    return status;
  if (rank < 0 || rank >= rank_count)
    return fail(ErrorKind::kValue, format("rank %d is outside 0..%d", rank, rank_count - 1));
  if (!OpenRanks::add(path, rank)) {
    return fail(ErrorKind::kState,
                format("rank %d of the communication session \"%s\" is open in this process: destroy "
                       "it before it is opened again",
                       rank, path));
  }
  std::unique_ptr<CommSession> made(new CommSession(rank, rank_count, path, wait_limit_ms));
  const SharedWindows::Place place{.name = made->name_,
                                   .label = "communication session \"" + made->path_ + "\"",
                                   .key = fnv1a(path, std::strlen(path)),
                                   .members = rank_count,
                                   .member = rank,
                                   .windows = rank_count,
                                   .own_window = rank,
                                   .limit_ms = wait_limit_ms};
  if (Status status = SharedWindows::join(place, &made->windows_); !status.ok()) return status;
  *session = std::move(made);
  return Status();
}

Status CommSession::require_own() const {
  if (getpid() == owner_pid_) return Status();
  return fail(ErrorKind::kState, "this communication session belongs to the parent process: open one in the child");
}

Status CommSession::require_windows() const {
  if (windows_->window_bytes() != 0) return Status();
  return fail(ErrorKind::kState, "the communication session has no windows yet: allocate them first");
}

Status CommSession::alloc_windows(std::size_t bytes, std::uint64_t* context) {
  if (Status status = windows_->allocate(bytes); !status.ok()) return status;
  if (Status status = windows_->barrier(); !status.ok()) return status;  // nobody sees a window before it is there
  auto made =
      make_context(static_cast<std::uint32_t>(rank_), static_cast<std::size_t>(rank_count_), windows_->window_bytes());
  for (int r = 0; r < rank_count_; ++r) set_window(*made, static_cast<std::size_t>(r), windows_->window(r));
  *context = address_of(*made);
  contexts_.push_back(std::move(made));
  return Status();
}

Status CommSession::window_base(std::uint64_t* address) const {
  if (Status status = require_windows(); !status.ok()) return status;
  *address = windows_->window(rank_);
  return Status();
}

Status CommSession::window_bytes(std::size_t* bytes) const {
  if (Status status = require_windows(); !status.ok()) return status;
  *bytes = windows_->window_bytes();
  return Status();
}

Status CommSession::check(const CommRanks& ranks) const {
  if (Status status = check_rank_count(ranks.count); !status.ok()) return status;
  if (ranks.ids == nullptr) return fail(ErrorKind::kValue, "the list of ranks is null");
  bool seen[kMostRanks] = {};
  for (std::size_t i = 0; i < ranks.count; ++i) {
    const std::uint32_t id = ranks.ids[i];
    if (id >= static_cast<std::uint32_t>(rank_count_))
      return fail(ErrorKind::kValue,
                  format("rank_ids[%zu] is %u; the session has ranks 0..%d", i, id, rank_count_ - 1));
    if (std::exchange(seen[id], true))
      return fail(ErrorKind::kValue, format("rank_ids[%zu] is %u, which is there twice", i, id));
  }
  if (ranks.own >= ranks.count || ranks.ids[ranks.own] != static_cast<std::uint32_t>(rank_)) {
    return fail(ErrorKind::kValue, format("domain_rank is %u; it must be the place of the caller's rank %d in rank_ids",
                                          ranks.own, rank_));
  }
  return Status();
}

Status CommSession::derive(const CommRanks& ranks, std::size_t offset, std::size_t bytes, std::uint64_t* context) {
  if (Status status = require_windows(); !status.ok()) return status;
  if (Status status = check(ranks); !status.ok()) return status;
  const std::size_t whole = windows_->window_bytes();
  if (bytes == 0 || offset > whole || bytes > whole - offset) {
    return fail(ErrorKind::kValue,
                format("%zu bytes at offset %zu are no part of a window of %zu bytes", bytes, offset, whole));
  }
  auto made = make_context(ranks.own, ranks.count, bytes);
  for (std::size_t i = 0; i < ranks.count; ++i)
    set_window(*made, i, windows_->window(static_cast<int>(ranks.ids[i])) + offset);
  *context = address_of(*made);
  contexts_.push_back(std::move(made));
  return Status();
}

// ---- domains ------------------------------------------------------------------------------------------------------------

Status CommSession::alloc_domain(std::uint64_t id, const CommRanks& ranks, std::size_t bytes, std::uint64_t* context,
                                 std::uint64_t* base) {
  if (Status status = check(ranks); !status.ok()) return status;
  const unsigned long long shown = id;
  if (domains_.count(id) != 0)
    return fail(ErrorKind::kState, format("domain %llu is allocated already: release it first", shown));
  const std::uint64_t of_path = fnv1a(path_.data(), path_.size());
  const SharedWindows::Place place{.name = format("%s_%llx", name_.c_str(), shown),
                                   .label = format("communication domain %llu", shown),
                                   .key = fnv1a(ranks.ids, ranks.count * sizeof *ranks.ids, of_path),
                                   .members = static_cast<int>(ranks.count),
                                   .member = static_cast<int>(ranks.own),
                                   .windows = static_cast<int>(ranks.count),
                                   .own_window = static_cast<int>(ranks.own),
                                   .limit_ms = wait_limit_ms_};
  Domain domain;
  if (Status status = SharedWindows::join(place, &domain.windows); !status.ok()) return status;
  if (Status status = domain.windows->allocate(bytes); !status.ok()) return status;
  if (Status status = domain.windows->barrier(); !status.ok()) return status;
  domain.context = make_context(ranks.own, ranks.count, domain.windows->window_bytes());
  for (std::size_t i = 0; i < ranks.count; ++i)
    set_window(*domain.context, i, domain.windows->window(static_cast<int>(i)));
  *context = address_of(*domain.context);
  *base = domain.windows->window(static_cast<int>(ranks.own));
  domains_.emplace(id, std::move(domain));
  return Status();
}

Status CommSession::release_domain(std::uint64_t id) {
  const auto found = domains_.find(id);
  if (found == domains_.end()) {
    return fail(ErrorKind::kKey, format("domain %llu is not allocated", static_cast<unsigned long long>(id)));
  }
  const Domain domain = std::move(found->second);
  domains_.erase(found);
  return domain.windows->barrier();  // nobody goes while another one still works in its window
}

// ---- global domains -----------------------------------------------------------------------------------------------------

Status CommSession::prepare_global(std::uint64_t id, std::uint32_t profile, std::uint32_t rank,
                                   std::uint32_t rank_count, std::size_t bytes, GlobalWindow* own) {
  const unsigned long long shown = id;
  if (Status status = check_rank_count(rank_count); !status.ok()) return status;
  if (rank >= rank_count) return fail(ErrorKind::kValue, format("rank %u is outside 0..%u", rank, rank_count - 1));
  if (profile != GlobalWindow::kSharedMemory) {
    return fail(ErrorKind::kValue, format("global domain %llu: profile %u is asked for; here there is only %u, memory "
                                          "that processes of one host share",
                                          shown, profile, GlobalWindow::kSharedMemory));
  }
  if (global_domains_.count(id) != 0)
    return fail(ErrorKind::kState, format("global domain %llu is prepared already: release it first", shown));
  static std::atomic<std::uint32_t> serial{0};
  const std::string name = format("%s%08x_%08x", kGlobalPrefix, static_cast<unsigned>(getpid()), serial.fetch_add(1));
  LocalHandle handle{};
  std::memcpy(handle.name, name.data(), name.size());
  handle.key = fnv1a(&id, sizeof id, rank);
  const SharedWindows::Place place{.name = name,
                                   .label = format("window of rank %u of global domain %llu", rank, shown),
                                   .key = handle.key,
                                   .members = static_cast<int>(rank_count),
                                   .member = static_cast<int>(rank),
                                   .windows = 1,
                                   .own_window = 0,
                                   .limit_ms = wait_limit_ms_};
  GlobalDomain domain;
  if (Status status = SharedWindows::join(place, &domain.window); !status.ok()) return status;
  if (Status status = domain.window->allocate(bytes); !status.ok()) return status;
  domain.own.version = GlobalWindow::kVersion;
  domain.own.profile = profile;
  domain.own.rank = rank;
  domain.own.rank_count = rank_count;
  domain.own.bytes = domain.window->window_bytes();
  domain.own.handle_bytes = sizeof handle;
  std::memcpy(domain.own.handle, &handle, sizeof handle);
  *own = domain.own;
  global_domains_.emplace(id, std::move(domain));
  return Status();
}

namespace {

// The descriptors of a domain, before anything is done with them: one for each rank, the own one among them.
Status check_global(const GlobalWindow& own, const GlobalWindow* windows, std::vector<LocalHandle>& handles) {
  bool seen[CommSession::kMostRanks] = {};
  for (std::size_t i = 0; i < handles.size(); ++i) {
    const GlobalWindow& given = windows[i];
    LocalHandle& handle = handles[i];
    std::memcpy(&handle, given.handle, sizeof handle);
    const bool named = std::memchr(handle.name, '\0', sizeof handle.name) != nullptr &&
                       std::strncmp(handle.name, kGlobalPrefix, std::strlen(kGlobalPrefix)) == 0 &&
                       std::strchr(handle.name + 1, '/') == nullptr;
    if (given.version != GlobalWindow::kVersion || given.profile != own.profile || !named ||
        given.handle_bytes != sizeof handle)
      return fail(ErrorKind::kValue,
                  format("descriptor %zu is none that comm_global_domain_prepare made on this host", i));
    if (given.rank_count != own.rank_count || given.bytes != own.bytes || given.rank >= own.rank_count) {
      return fail(ErrorKind::kValue,
                  format("descriptor %zu is of rank %u of %u with %llu bytes; this domain has %u "
                         "ranks with %llu bytes",
                         i, given.rank, given.rank_count, static_cast<unsigned long long>(given.bytes), own.rank_count,
                         static_cast<unsigned long long>(own.bytes)));
    }
    if (std::exchange(seen[given.rank], true))
      return fail(ErrorKind::kValue, format("descriptor %zu is a second one of rank %u", i, given.rank));
    if (given.rank == own.rank && std::memcmp(&given, &own, sizeof own) != 0)
      return fail(ErrorKind::kValue, format("descriptor %zu is of this rank, but not the one that was made here", i));
  }
  return Status();
}

}  // namespace

Status CommSession::import_global(std::uint64_t id, const GlobalWindow* windows, std::size_t count,
                                  std::uint64_t* context, std::uint64_t* base) {
  const unsigned long long shown = id;
  const auto found = global_domains_.find(id);
  if (found == global_domains_.end())
    return fail(ErrorKind::kKey, format("global domain %llu is not prepared here", shown));
  GlobalDomain& domain = found->second;
  const GlobalWindow& own = domain.own;
  if (domain.context != nullptr)
    return fail(ErrorKind::kState, format("global domain %llu is imported already", shown));
  if (count != own.rank_count)
    return fail(ErrorKind::kValue,
                format("global domain %llu has %u ranks, and %zu descriptors are given", shown, own.rank_count, count));
  std::vector<LocalHandle> handles(count);
  if (Status status = check_global(own, windows, handles); !status.ok()) return status;
  auto made = make_context(own.rank, count, own.bytes);
  std::vector<std::unique_ptr<SharedWindows>> others;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t rank = windows[i].rank;
    if (rank == own.rank) {
      set_window(*made, rank, domain.window->window(0));
      continue;
    }
    const SharedWindows::Place place{.name = handles[i].name,
                                     .label = format("window of rank %u of global domain %llu", rank, shown),
                                     .key = handles[i].key,
                                     .members = static_cast<int>(own.rank_count),
                                     .member = static_cast<int>(own.rank),
                                     .windows = 1,
                                     .own_window = SharedWindows::kNoWindow,
                                     .create = false,
                                     .limit_ms = wait_limit_ms_};
    std::unique_ptr<SharedWindows> other;
    if (Status status = SharedWindows::join(place, &other); !status.ok()) return status;
    if (Status status = other->attach(); !status.ok()) return status;
    if (other->window_bytes() != own.bytes) {
      return fail(ErrorKind::kValue, format("the window of rank %u of global domain %llu has %zu bytes, not %llu", rank,
                                            shown, other->window_bytes(), static_cast<unsigned long long>(own.bytes)));
    }
    set_window(*made, rank, other->window(0));
    others.push_back(std::move(other));
  }
  domain.others = std::move(others);
  domain.context = std::move(made);
  *context = address_of(*domain.context);
  *base = domain.window->window(0);
  return Status();
}

Status CommSession::release_global(std::uint64_t id) {
  if (global_domains_.erase(id) != 0) return Status();
  return fail(ErrorKind::kKey, format("global domain %llu is not prepared here", static_cast<unsigned long long>(id)));
}

}  // namespace simpler::host
