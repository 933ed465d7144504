#include "host/shared_windows.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "base/futex.h"
#include "host/process_id.h"

namespace simpler::host {

enum class SharedWindows::Cause : std::uint32_t { kNone, kDied, kLeft, kLate, kOtherSize, kNoRoom };

// The first page of the object. What is not atomic is written under the file lock, before the member that reads it joins.
struct SharedWindows::Header {
  static constexpr std::size_t kBytes = 4096;
  static constexpr std::uint64_t kMagic = 0x31574d4853504d53;  // "SMPSHMW1"

  enum State : std::uint32_t { kEmpty, kJoined, kLeft };
  struct Member {
    std::atomic<std::uint32_t> state;    // of State
    std::atomic<std::uint32_t> arrived;  // the phase that it waits for in the barrier
    ProcessId process;
  };

  std::uint64_t magic;  // written last
  std::uint64_t key;
  std::uint32_t members;
  std::uint32_t named;                      // the object still has its name; under the file lock
  std::atomic<std::uint64_t> window_bytes;  // 0: not agreed; written under the file lock
  std::atomic<std::uint32_t> changed;       // counts what waiters want to hear of; they sleep on it
  std::atomic<std::uint32_t> broken;        // cause | member << 8
  std::atomic<std::uint32_t> phase;         // barriers that are complete
  std::atomic<std::uint32_t> arrivals;      // at the next one
  Member member[kMostMembers];

  bool here(std::uint32_t m) const { return member[m].state.load() == kJoined && member[m].process.alive(); }
};

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookInterval{50};  // how late a death may be noticed
constexpr const char* kFolder = "/dev/shm";
constexpr const char* kPrefix = "simpler_";

std::string text_of(int error) { return std::strerror(error); }

// Takes memory for a part of the object now, where it can be refused; writing would be answered with a signal.
int reserve(int file, off_t begin, off_t bytes) {
  int error = 0;
  do {
    error = posix_fallocate(file, begin, bytes);
  } while (error == EINTR);
  return error;
}

// The windows that this process maps: base -> bytes.
struct Mapped {
  std::shared_mutex mutex;
  std::map<std::uint64_t, std::size_t> ranges;
  std::atomic<std::size_t> count{0};  // so that a process without windows takes no lock
};
Mapped& mapped() {
  static Mapped& all = *new Mapped;  // never destroyed: objects of static life may outlive it
  return all;
}

}  // namespace

// The lock of an open file: ends with the process that holds it.
class SharedWindows::Lock {
 public:
  Lock(int file, std::int64_t limit_ms) : file_(file) {
    const auto deadline = Clock::now() + std::chrono::milliseconds(limit_ms);
    std::chrono::microseconds pause{20};
    for (;;) {
      if (flock(file_, LOCK_EX | LOCK_NB) == 0) break;
      if ((errno != EWOULDBLOCK && errno != EINTR) || Clock::now() >= deadline) return;
      std::this_thread::sleep_for(pause);  // the system has no lock of files with a limit
      pause = std::min(pause * 2, std::chrono::microseconds(2000));
    }
    held_ = true;
  }
  ~Lock() {
    if (held_) flock(file_, LOCK_UN);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  bool held() const { return held_; }

 private:
  const int file_;
  bool held_ = false;
};

SharedWindows::SharedWindows(const Place& place) : place_(place), pid_(static_cast<std::uint32_t>(getpid())) {
  static_assert(sizeof(Header) <= Header::kBytes);
}

SharedWindows::~SharedWindows() {
  if (joined_ && owned()) leave();
  if (base_ != 0) {
    const std::size_t bytes = window_bytes_ * static_cast<std::size_t>(place_.windows);
    if (owned()) {
      const std::unique_lock lock(mapped().mutex);
      mapped().ranges.erase(base_);
      --mapped().count;
    }
    munmap(reinterpret_cast<void*>(base_), bytes);
  }
  if (header_ != nullptr) munmap(header_, Header::kBytes);
  if (file_ >= 0) close(file_);
}

bool SharedWindows::owned() const { return static_cast<std::uint32_t>(getpid()) == pid_; }

bool SharedWindows::hold(std::uint64_t address, std::size_t bytes) {
  Mapped& all = mapped();
  if (all.count.load(std::memory_order_relaxed) == 0) return false;  // whoever passes a window on orders this, too
  const std::shared_lock lock(all.mutex);
  auto after = all.ranges.upper_bound(address);
  if (after == all.ranges.begin()) return false;
  --after;
  const std::uint64_t offset = address - after->first;
  return offset <= after->second && bytes <= after->second - offset;
}

// ---- joining ------------------------------------------------------------------------------------------------------------

Status SharedWindows::join(const Place& place, std::unique_ptr<SharedWindows>* joined) {
  if (place.create) remove_abandoned(place.name.substr(1));
  for (;;) {
    std::unique_ptr<SharedWindows> windows(new SharedWindows(place));
    bool again = false;  // the name was taken from the object that was opened: there is another one, or none
    if (Status status = windows->enter(&again); !status.ok()) return status;
    if (again) continue;
    *joined = std::move(windows);
    return Status();
  }
}

Status SharedWindows::open_error() const {
  const int error = errno;
  if (error == ENOENT)
    return fail(ErrorKind::kState, place_.label + " is gone: the process that made it released it, or died");
  return Status(error == ENOSPC || error == ENOMEM || error == EMFILE ? ErrorKind::kMemory : ErrorKind::kDevice, -1,
                format("%s: shared memory %s cannot be had: %s", place_.label.c_str(), place_.name.c_str(),
                       text_of(error).c_str()));
}

Status SharedWindows::enter(bool* again) {
  file_ = shm_open(place_.name.c_str(), O_RDWR | (place_.create ? O_CREAT : 0), 0600);
  if (file_ < 0) return open_error();
  const Lock lock(file_, place_.limit_ms);
  if (!lock.held()) {
    return fail(ErrorKind::kTimeout, format("%s: another process has not let go of it within %lld ms",
                                            place_.label.c_str(), static_cast<long long>(place_.limit_ms)));
  }
  struct stat facts {};
  if (fstat(file_, &facts) != 0) return open_error();
  if (facts.st_nlink == 0) {
    *again = true;
    return Status();
  }
  if (facts.st_size < static_cast<off_t>(Header::kBytes)) {
    if (const int error = reserve(file_, 0, Header::kBytes); error != 0) {
      shm_unlink(place_.name.c_str());
      errno = error;
      return open_error();
    }
  }
  void* const page = mmap(nullptr, Header::kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (page == MAP_FAILED) return open_error();
  header_ = static_cast<Header*>(page);
  Header& header = *header_;
  if (header.magic == Header::kMagic && abandoned(header)) {
    shm_unlink(place_.name.c_str());
    *again = true;
    return Status();
  }
  if (header.magic != Header::kMagic) {  // a new page reads as zeros
    header.key = place_.key;
    header.members = static_cast<std::uint32_t>(place_.members);
    header.named = 1;
    header.magic = Header::kMagic;
  }
  if (header.key != place_.key) {
    return fail(ErrorKind::kState,
                format("%s: its ranks disagree about what it is, or another one has the same name %s",
                       place_.label.c_str(), place_.name.c_str()));
  }
  if (header.members != static_cast<std::uint32_t>(place_.members)) {
    return fail(ErrorKind::kValue,
                format("%s has %u ranks for the others, not %d", place_.label.c_str(), header.members, place_.members));
  }
  Header::Member& me = header.member[place_.member];
  if (header.here(static_cast<std::uint32_t>(place_.member))) {
    return fail(ErrorKind::kState,
                format("%s: rank %d is taken by process %u", place_.label.c_str(), place_.member, me.process.pid));
  }
  for (std::uint32_t m = 0; m < header.members; ++m) {
    if (header.member[m].state.load() == Header::kJoined && !header.member[m].process.alive())
      break_off(Cause::kDied, static_cast<int>(m));
  }
  if (header.broken.load() != 0) return broken();
  me.process = ProcessId::self();
  me.state.store(Header::kJoined);
  joined_ = true;
  const auto is_in = [](const Header::Member& member) { return member.state.load() == Header::kJoined; };
  if (std::all_of(header.member, header.member + header.members, is_in)) {
    shm_unlink(place_.name.c_str());
    header.named = 0;
  }
  return Status();
}

bool SharedWindows::abandoned(const Header& header) {
  for (std::uint32_t m = 0; m < std::min<std::uint32_t>(header.members, kMostMembers); ++m) {
    if (header.here(m)) return false;
  }
  return true;
}

// Removes what members left that died before all had joined. Of objects in use it takes no lock: their members would
// wait for this process, which may be slow, up to their limit. What looks abandoned is looked at again with the lock.
void SharedWindows::remove_abandoned(const std::string& except) {
  DIR* const folder = opendir(kFolder);
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder)) {
    if (std::strncmp(entry->d_name, kPrefix, std::strlen(kPrefix)) != 0 || except == entry->d_name) continue;
    const std::string name = std::string("/") + entry->d_name;
    const int file = shm_open(name.c_str(), O_RDWR, 0);
    if (file < 0) continue;
    struct stat facts {};
    if (fstat(file, &facts) == 0 && facts.st_size >= static_cast<off_t>(Header::kBytes)) {
      void* const page = mmap(nullptr, Header::kBytes, PROT_READ, MAP_SHARED, file, 0);
      if (page != MAP_FAILED) {
        const Header& header = *static_cast<const Header*>(page);
        const auto is_left = [&] { return header.magic == Header::kMagic && abandoned(header); };
        if (is_left()) {
          const Lock lock(file, 0);
          if (lock.held() && fstat(file, &facts) == 0 && facts.st_nlink != 0 && is_left()) shm_unlink(name.c_str());
        }
        munmap(page, Header::kBytes);
      }
    }
    close(file);
  }
  closedir(folder);
}

void SharedWindows::leave() {
  const Lock lock(file_, place_.limit_ms);
  Header& header = *header_;
  header.member[place_.member].state.store(Header::kLeft);
  if (lock.held() && header.named != 0 && abandoned(header)) {
    shm_unlink(place_.name.c_str());
    header.named = 0;
  }
  announce();
}

// ---- windows ------------------------------------------------------------------------------------------------------------

Status SharedWindows::allocate(std::size_t bytes) {
  if (!owned()) return fail(ErrorKind::kState, place_.label + " belongs to the parent process");
  if (base_ != 0) return fail(ErrorKind::kState, place_.label + " has its windows already");
  if (header_->broken.load() != 0) return broken();
  constexpr std::size_t kPage = Header::kBytes;
  const std::size_t most = (SIZE_MAX / 2 - kPage) / static_cast<std::size_t>(place_.windows) / kPage * kPage;
  if (bytes == 0 || bytes > most) {
    return fail(ErrorKind::kValue,
                format("%s: a window of %zu bytes is asked for; allowed: 1 to %zu", place_.label.c_str(), bytes, most));
  }
  const std::size_t stride = (bytes + kPage - 1) / kPage * kPage;
  {
    const Lock lock(file_, place_.limit_ms);
    if (!lock.held()) return fail(ErrorKind::kTimeout, place_.label + ": another process has not let go of it");
    const std::uint64_t agreed = header_->window_bytes.load();
    if (agreed != 0 && agreed != stride) {
      break_off(Cause::kOtherSize, place_.member);
      return fail(ErrorKind::kValue, format("%s: windows of %zu bytes are asked for; the other ranks have %llu",
                                            place_.label.c_str(), stride, static_cast<unsigned long long>(agreed)));
    }
    const off_t whole = static_cast<off_t>(kPage + stride * static_cast<std::size_t>(place_.windows));
    int error = agreed == 0 && ftruncate(file_, whole) != 0 ? errno : 0;
    if (error == 0 && place_.own_window != kNoWindow) {
      const off_t begin = static_cast<off_t>(kPage + stride * static_cast<std::size_t>(place_.own_window));
      error = reserve(file_, begin, static_cast<off_t>(stride));
    }
    if (error != 0) {
      break_off(Cause::kNoRoom, place_.member);
      return fail(ErrorKind::kMemory,
                  format("%s: no memory for a window of %zu bytes (%s). Ask for less, or enlarge %s",
                         place_.label.c_str(), stride, text_of(error).c_str(), kFolder));
    }
    header_->window_bytes.store(stride);
  }
  return map_windows();
}

Status SharedWindows::attach() {
  if (base_ != 0) return fail(ErrorKind::kState, place_.label + " has its windows already");
  if (header_->window_bytes.load() == 0) return fail(ErrorKind::kState, place_.label + " has no window yet");
  return map_windows();
}

Status SharedWindows::map_windows() {
  const std::size_t stride = header_->window_bytes.load();
  void* const base = mmap(nullptr, stride * static_cast<std::size_t>(place_.windows), PROT_READ | PROT_WRITE,
                          MAP_SHARED, file_, static_cast<off_t>(Header::kBytes));
  if (base == MAP_FAILED) {
    break_off(Cause::kNoRoom, place_.member);
    return open_error();
  }
  window_bytes_ = stride;
  base_ = reinterpret_cast<std::uint64_t>(base);
  const std::unique_lock lock(mapped().mutex);
  mapped().ranges.emplace(base_, stride * static_cast<std::size_t>(place_.windows));
  ++mapped().count;
  return Status();
}

// ---- waiting ------------------------------------------------------------------------------------------------------------

// A member arrives by raising the count, and the last one opens the barrier by moving the phase on: acq_rel on the count
// and release/acquire on the phase make what each wrote before visible to all after.
Status SharedWindows::barrier() {
  if (!owned()) return fail(ErrorKind::kState, place_.label + " belongs to the parent process");
  if (header_->broken.load() != 0) return broken();
  Header& header = *header_;
  const std::uint32_t next = header.phase.load(std::memory_order_relaxed) + 1;  // it moves only after this arrival
  header.member[place_.member].arrived.store(next, std::memory_order_relaxed);
  if (header.arrivals.fetch_add(1, std::memory_order_acq_rel) + 1 == header.members) {
    header.arrivals.store(0, std::memory_order_relaxed);
    header.phase.store(next, std::memory_order_release);
    announce();
    return Status();
  }
  return wait([&] { return header.phase.load(std::memory_order_acquire) == next; },
              [&](int m) { return header.member[m].arrived.load(std::memory_order_relaxed) != next; });
}

void SharedWindows::announce() {
  header_->changed.fetch_add(1, std::memory_order_seq_cst);
  futex_wake_all(header_->changed);
}

void SharedWindows::break_off(Cause cause, int member) {
  std::uint32_t none = 0;
  header_->broken.compare_exchange_strong(none, static_cast<std::uint32_t>(cause) | static_cast<std::uint32_t>(member)
                                                                                        << 8);
  announce();
}

Status SharedWindows::broken() const {
  const std::uint32_t word = header_->broken.load();
  const std::uint32_t member = word >> 8;
  const std::string rank = format("%s: rank %u", place_.label.c_str(), member);
  const std::string remedy = ". Destroy it in every rank and begin again";
  const std::uint32_t pid = header_->member[member].process.pid;
  switch (static_cast<Cause>(word & 0xFF)) {
    case Cause::kDied: return fail(ErrorKind::kState, format("%s (process %u) died", rank.c_str(), pid) + remedy);
    case Cause::kLeft: return fail(ErrorKind::kState, format("%s (process %u) left", rank.c_str(), pid) + remedy);
    case Cause::kLate:
      return fail(ErrorKind::kTimeout,
                  format("%s did not come within %lld ms%s", rank.c_str(), static_cast<long long>(place_.limit_ms),
                         pid == 0 ? ", it never joined" : "") +
                      remedy);
    case Cause::kOtherSize: return fail(ErrorKind::kValue, rank + " asked for windows of another size" + remedy);
    case Cause::kNoRoom: return fail(ErrorKind::kMemory, rank + " found no memory for its window" + remedy);
    case Cause::kNone: break;
  }
  return Status();
}

// Until done() answers true. missing(m): whether member m is still waited for.
Status SharedWindows::wait(const std::function<bool()>& done, const std::function<bool(int)>& missing) {
  const auto begin = Clock::now();
  const auto deadline = begin + std::chrono::milliseconds(place_.limit_ms);
  auto look = begin + kLookInterval;
  for (;;) {
    // Read before the questions: a change after them finds this thread awake, or wakes it.
    const std::uint32_t seen = header_->changed.load(std::memory_order_seq_cst);
    if (done()) return Status();
    if (header_->broken.load() != 0) return broken();
    const auto now = Clock::now();
    const bool look_now = now >= look;
    if (look_now) look = now + kLookInterval;
    int first = -1;  // that is waited for
    for (int m = place_.members - 1; m >= 0; --m) {
      if (!missing(m)) continue;
      first = m;
      const Header::Member& member = header_->member[m];
      const std::uint32_t state = member.state.load();
      if (state == Header::kLeft) break_off(Cause::kLeft, m);
      if (state == Header::kJoined && look_now && !member.process.alive()) break_off(Cause::kDied, m);
    }
    // All have arrived, and yet it is not done: the last one has to say so, if it can. Who is not here any more may have
    // said it before going, after the question above.
    for (int m = 0; first < 0 && look_now && m < place_.members; ++m) {
      if (!header_->here(static_cast<std::uint32_t>(m)) && !done()) break_off(Cause::kDied, m);
    }
    if (now >= deadline) break_off(Cause::kLate, std::max(first, 0));
    const auto nap = std::min<std::chrono::nanoseconds>(
        look - now, std::max<std::chrono::nanoseconds>(deadline - now, std::chrono::milliseconds(1)));
    futex_wait(header_->changed, seen, nap.count());
  }
}

}  // namespace simpler::host
