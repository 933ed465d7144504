// Sessions of several processes: windows, barriers, domains, and what happens when one of them does not play its part.
#include "host/comm.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "host/device_runner.h"
#include "host/process_id.h"

namespace simpler::host {
namespace {

using Session = std::unique_ptr<CommSession>;

#define EXPECT_OK(expression)                                 \
  do {                                                        \
    const Status status_of_it = (expression);                 \
    EXPECT_TRUE(status_of_it.ok()) << status_of_it.message(); \
  } while (false)
#define EXPECT_FAILS(status, wanted_kind, wanted_text) expect_failure((status), (wanted_kind), (wanted_text), __LINE__)
void expect_failure(const Status& status, ErrorKind kind, const std::string& text, int line) {
  EXPECT_FALSE(status.ok()) << "line " << line;
  EXPECT_EQ(static_cast<int>(status.kind()), static_cast<int>(kind)) << "line " << line << ": " << status.message();
  EXPECT_NE(status.message().find(text), std::string::npos) << "line " << line << ": " << status.message();
}

// Memory that a test shares with the processes that it forks.
template <class T> class Shared {
 public:
  Shared()
      : at_(static_cast<T*>(mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~Shared() { munmap(at_, sizeof(T)); }
  T* operator->() const { return at_; }
  T& operator*() const { return *at_; }

 private:
  T* const at_;
};

using Flag = std::atomic<int>;
void raise_flag(Flag& flag) { flag.fetch_add(1); }
void wait_for(const Flag& flag, int value) {  // of another process, which is about to raise it
  while (flag.load() < value) usleep(200);
}

// A process that does `body` and ends with 1 if an expectation failed there.
pid_t fork_rank(const std::function<void()>& body) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  body();
  std::fflush(stdout);  // what failed
  _exit(testing::Test::HasFailure() ? 1 : 0);
}
void expect_good_end(pid_t pid) {
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "process " << pid << " ended with " << status;
}
void kill_now(pid_t pid) {
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}
void in_ranks(int count, const std::function<void(int)>& body) {
  std::vector<pid_t> ranks;
  for (int r = 0; r < count; ++r) ranks.push_back(fork_rank([&] { body(r); }));
  for (const pid_t pid : ranks) expect_good_end(pid);
}

// Named objects of sessions of this process's children. Any process on this machine may be about to remove one that is
// abandoned; it holds the lock of it meanwhile.
int objects() {
  const std::string mine = format("simpler_%08x_", static_cast<unsigned>(getpid()));
  int count = 0;
  DIR* const folder = opendir("/dev/shm");
  while (const dirent* entry = readdir(folder)) {
    if (std::strncmp(entry->d_name, mine.c_str(), mine.size()) != 0) continue;
    const int file = openat(dirfd(folder), entry->d_name, O_RDWR);
    if (file < 0) continue;
    struct stat facts {};
    count += flock(file, LOCK_EX) == 0 && fstat(file, &facts) == 0 && facts.st_nlink != 0;
    close(file);
  }
  closedir(folder);
  return count;
}

Session open_rank(int rank, int count, const char* path = "group", std::int64_t limit_ms = 20'000) {
  Session session;
  EXPECT_OK(CommSession::open(rank, count, path, &session, limit_ms));
  return session;
}
const CommContext& context_at(std::uint64_t address) { return *reinterpret_cast<const CommContext*>(address); }
volatile int& word_at(std::uint64_t address) { return *reinterpret_cast<volatile int*>(address); }

class CommRanksOf : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Count, CommRanksOf, testing::Values(1, 2, 4));

TEST_P(CommRanksOf, ReachEachOthersWindows) {
  const int count = GetParam();
  in_ranks(count, [&](int rank) {
    const Session session = open_rank(rank, count);
    std::uint64_t context = 0, base = 0;
    std::size_t bytes = 0;
    EXPECT_OK(session->alloc_windows(5000, &context));
    EXPECT_OK(session->window_base(&base));
    EXPECT_OK(session->window_bytes(&bytes));
    const CommContext& own = context_at(context);
    EXPECT_EQ(bytes, 8192u) << "whole pages";
    EXPECT_EQ(own.winSize, bytes);
    EXPECT_EQ(own.rankId, static_cast<std::uint32_t>(rank));
    EXPECT_EQ(own.rankNum, static_cast<std::uint32_t>(count));
    EXPECT_EQ(own.windowsIn[rank], base);
    EXPECT_EQ(std::memcmp(own.windowsIn, own.windowsOut, sizeof own.windowsIn), 0);
    EXPECT_EQ(own.workSpace, 0u);
    EXPECT_EQ(word_at(base + 8188), 0) << "a window starts zeroed";
    word_at(base + 8188) = 100 + rank;
    EXPECT_OK(session->barrier());
    for (int r = 0; r < count; ++r) EXPECT_EQ(word_at(own.windowsIn[r] + 8188), 100 + r);
    EXPECT_FAILS(session->alloc_windows(5000, &context), ErrorKind::kState, "has its windows already");
  });
  EXPECT_EQ(objects(), 0);
}

TEST_P(CommRanksOf, MeetInEachOfManyBarriers) {
  const int count = GetParam();
  in_ranks(count, [&](int rank) {
    const Session session = open_rank(rank, count);
    std::uint64_t context = 0;
    EXPECT_OK(session->alloc_windows(4096, &context));
    int wrong = 0;
    for (int round = 1; round <= 1000; ++round) {
      word_at(context_at(context).windowsIn[rank]) = round;
      EXPECT_OK(session->barrier());
      for (int r = 0; r < count; ++r) wrong += word_at(context_at(context).windowsIn[r]) != round;
      EXPECT_OK(session->barrier());
    }
    EXPECT_EQ(wrong, 0);
  });
}

TEST(Comm, ArgumentsAreChecked) {
  Session session;
  EXPECT_FAILS(CommSession::open(0, 0, "group", &session), ErrorKind::kValue, "allowed: 1 to 64");
  EXPECT_FAILS(CommSession::open(0, 65, "group", &session), ErrorKind::kValue, "allowed: 1 to 64");
  EXPECT_FAILS(CommSession::open(2, 2, "group", &session), ErrorKind::kValue, "rank 2 is outside 0..1");
  EXPECT_FAILS(CommSession::open(-1, 2, "group", &session), ErrorKind::kValue, "rank -1 is outside 0..1");
  EXPECT_FAILS(CommSession::open(0, 1, "", &session), ErrorKind::kValue, "is empty");
  EXPECT_FAILS(CommSession::open(0, 1, nullptr, &session), ErrorKind::kValue, "is empty");
  session = open_rank(0, 1, format("arguments of %d", getpid()).c_str());
  std::uint64_t context = 0, base = 0;
  std::size_t bytes = 0;
  const std::uint32_t ids[] = {0, 0};
  EXPECT_FAILS(session->window_base(&base), ErrorKind::kState, "no windows yet");
  EXPECT_FAILS(session->window_bytes(&bytes), ErrorKind::kState, "no windows yet");
  EXPECT_FAILS(session->derive({ids, 1, 0}, 0, 1, &context), ErrorKind::kState, "no windows yet");
  EXPECT_FAILS(session->alloc_windows(0, &context), ErrorKind::kValue, "allowed: 1 to");
  EXPECT_FAILS(session->alloc_windows(SIZE_MAX, &context), ErrorKind::kValue, "allowed: 1 to");
  EXPECT_OK(session->alloc_windows(4096, &context));
  EXPECT_FAILS(session->derive({ids, 0, 0}, 0, 1, &context), ErrorKind::kValue, "allowed: 1 to 64");
  EXPECT_FAILS(session->derive({ids, 2, 0}, 0, 1, &context), ErrorKind::kValue, "is there twice");
  EXPECT_FAILS(session->derive({ids, 1, 1}, 0, 1, &context), ErrorKind::kValue, "domain_rank is 1");
  EXPECT_FAILS(session->derive({nullptr, 1, 0}, 0, 1, &context), ErrorKind::kValue, "is null");
  EXPECT_FAILS(session->derive({ids, 1, 0}, 4096, 1, &context), ErrorKind::kValue, "no part of a window");
  EXPECT_FAILS(session->derive({ids, 1, 0}, 1, SIZE_MAX, &context), ErrorKind::kValue, "no part of a window");
  const std::uint32_t unknown[] = {1};
  EXPECT_FAILS(session->derive({unknown, 1, 0}, 0, 1, &context), ErrorKind::kValue, "the session has ranks 0..0");
  EXPECT_FAILS(session->alloc_domain(1, {unknown, 1, 0}, 64, &context, &base), ErrorKind::kValue, "ranks 0..0");
  EXPECT_FAILS(session->release_domain(1), ErrorKind::kKey, "domain 1 is not allocated");
}

TEST(Comm, APartOfTheWindowsCanBeGivenToSomeRanks) {
  in_ranks(3, [&](int rank) {
    const Session session = open_rank(rank, 3);
    std::uint64_t whole = 0, part = 0;
    EXPECT_OK(session->alloc_windows(8192, &whole));
    const std::uint32_t ids[] = {2, 0};
    if (rank == 1) {
      EXPECT_FAILS(session->derive({ids, 2, 0}, 4096, 64, &part), ErrorKind::kValue, "place of the caller's rank 1");
      return;
    }
    EXPECT_OK(session->derive({ids, 2, rank == 2 ? 0u : 1u}, 4096, 64, &part));
    EXPECT_EQ(context_at(part).rankNum, 2u);
    EXPECT_EQ(context_at(part).winSize, 64u);
    EXPECT_EQ(context_at(part).windowsIn[0], context_at(whole).windowsIn[2] + 4096);
    EXPECT_EQ(context_at(part).windowsIn[1], context_at(whole).windowsIn[0] + 4096);
  });
}

TEST(Comm, ARankIsOpenOnceAndCanBeOpenedAgain) {
  Shared<Flag> opened, tried;
  in_ranks(2, [&](int process) {
    if (process == 0) {
      const Session session = open_rank(0, 2);
      Session again;
      EXPECT_FAILS(CommSession::open(0, 2, "group", &again), ErrorKind::kState, "is open in this process");
      raise_flag(*opened);
      wait_for(*tried, 1);
    } else {
      wait_for(*opened, 1);
      Session second;
      EXPECT_FAILS(CommSession::open(0, 2, "group", &second), ErrorKind::kState, "rank 0 is taken by process");
      EXPECT_FAILS(CommSession::open(1, 3, "group", &second), ErrorKind::kValue, "has 2 ranks for the others, not 3");
      raise_flag(*tried);
    }
  });
  EXPECT_EQ(objects(), 0) << "who leaves last takes the name along";
  in_ranks(2, [&](int rank) {
    for (int life = 0; life < 50; ++life) {  // nobody waits for the other one to have left
      const Session session = open_rank(rank, 2);
      std::uint64_t context = 0;
      EXPECT_OK(session->alloc_windows(4096, &context));
      EXPECT_EQ(word_at(context_at(context).windowsIn[1 - rank] + 4 * rank), 0);
      word_at(context_at(context).windowsIn[rank] + 4 * (1 - rank)) = 0;
    }
  });
  EXPECT_EQ(objects(), 0);
}

// The limit is far away: death itself ends the wait.
TEST(Comm, ARankThatDiesEndsTheWaitsOfTheOthers) {
  Shared<Flag> ready;
  std::array<pid_t, 3> ranks{};
  for (int r = 0; r < 3; ++r) {
    ranks[static_cast<std::size_t>(r)] = fork_rank([&] {
      const Session session = open_rank(r, 3, "group", 100'000);
      std::uint64_t context = 0;
      EXPECT_OK(session->alloc_windows(4096, &context));
      raise_flag(*ready);
      if (r == 1) pause();
      const auto begin = std::chrono::steady_clock::now();
      const std::string dead = format("rank 1 (process %d) died", ranks[1] != 0 ? ranks[1] : 0);
      EXPECT_FAILS(session->barrier(), ErrorKind::kState, r == 2 ? dead : "rank 1 (process ");
      EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
      EXPECT_FAILS(session->barrier(), ErrorKind::kState, "died. Destroy it in every rank and begin again");
    });
  }
  wait_for(*ready, 3);
  kill_now(ranks[1]);
  expect_good_end(ranks[0]);
  expect_good_end(ranks[2]);
  EXPECT_EQ(objects(), 0);
}

TEST(Comm, ARankThatLeftEndsTheWaitsOfTheOthers) {
  in_ranks(2, [&](int rank) {
    const Session session = open_rank(rank, 2, "group", 100'000);
    std::uint64_t context = 0;
    EXPECT_OK(session->alloc_windows(4096, &context));
    if (rank == 0) EXPECT_FAILS(session->barrier(), ErrorKind::kState, "left");
  });
}

TEST(Comm, ARankThatNeverComesEndsTheWaitAtTheLimit) {
  const Session session = open_rank(0, 2, format("late for %d", getpid()).c_str(), 200);
  std::uint64_t context = 0;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FAILS(session->alloc_windows(4096, &context), ErrorKind::kTimeout,
               "rank 1 did not come within 200 ms, it never joined");
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(200));
  EXPECT_FAILS(session->barrier(), ErrorKind::kTimeout, "rank 1 did not come");
}

TEST(Comm, WhatDeadRanksLeftIsRemovedByTheNextOnes) {
  Shared<Flag> ready;
  for (const char* path : {"group", "another group"}) {
    kill_now([&] {
      const pid_t pid = fork_rank([&] {
        const Session session = open_rank(0, 2, path);
        raise_flag(*ready);
        pause();
      });
      wait_for(*ready, 1);
      ready->store(0);
      return pid;
    }());
  }
  EXPECT_LE(objects(), 1) << "they died before all had joined; the second one has removed what the first one left, and "
                             "any process that joins a session may have removed what the second one left";
  in_ranks(2, [&](int rank) {
    const Session session = open_rank(rank, 2);
    std::uint64_t context = 0;
    EXPECT_OK(session->alloc_windows(4096, &context));
  });
  EXPECT_EQ(objects(), 0);
}

TEST(Comm, NothingStaysBehindWhenAllRanksAreKilled) {
  Shared<Flag> ready;
  std::vector<pid_t> ranks;
  for (int r = 0; r < 2; ++r) {
    ranks.push_back(fork_rank([&] {
      const Session session = open_rank(r, 2);
      std::uint64_t context = 0, base = 0;
      const std::uint32_t ids[] = {0, 1};
      EXPECT_OK(session->alloc_windows(4096, &context));
      EXPECT_OK(session->alloc_domain(1, {ids, 2, static_cast<std::uint32_t>(r)}, 4096, &context, &base));
      raise_flag(*ready);
      pause();
    }));
  }
  wait_for(*ready, 2);
  for (const pid_t pid : ranks) kill_now(pid);
  EXPECT_EQ(objects(), 0);
}

TEST(Comm, ADisagreementIsToldToAll) {
  Shared<Flag> tried;
  in_ranks(2, [&](int rank) {
    const Session session = open_rank(rank, 2);
    std::uint64_t context = 0;
    if (rank == 1) wait_for(*tried, 1);  // rank 0 may have joined only, or wait already
    if (rank == 0) raise_flag(*tried);
    EXPECT_FAILS(session->alloc_windows(4096u << rank, &context), ErrorKind::kValue, "s");
    EXPECT_FAILS(session->barrier(), ErrorKind::kValue, "asked for windows of another size");
  });
}

TEST(Comm, AWindowThatIsTooLargeIsRefusedToAll) {
  in_ranks(2, [&](int rank) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 20, 1 << 20};  // of files, shared memory included
    setrlimit(RLIMIT_FSIZE, &limit);
    const Session session = open_rank(rank, 2);
    EXPECT_OK(session->barrier());  // else the first one's failure may keep the second one from joining
    std::uint64_t context = 0;
    EXPECT_FAILS(session->alloc_windows(8 << 20, &context), ErrorKind::kMemory, "memory for");
  });
  EXPECT_EQ(objects(), 0);
}

// Else writing to it could be answered with a signal.
TEST(Comm, TheMemoryOfAWindowIsThereBeforeItIsWritten) {
  constexpr off_t kBytes = 17 * 4096;
  const Session session = open_rank(0, 1, format("memory of %d", getpid()).c_str());
  std::uint64_t context = 0;
  EXPECT_OK(session->alloc_windows(kBytes, &context));
  int found = 0;
  for (int file = 0; file < 256; ++file) {  // the object has no name any more, but a size of its own
    struct stat facts {};
    if (fstat(file, &facts) != 0 || facts.st_nlink != 0 || facts.st_size != 4096 + kBytes) continue;
    ++found;
    EXPECT_GE(facts.st_blocks * 512, facts.st_size);
  }
  EXPECT_EQ(found, 1);
}

TEST(Comm, DomainsHaveWindowsOfTheirOwn) {
  in_ranks(3, [&](int rank) {
    const Session session = open_rank(rank, 3);
    const std::uint32_t both[] = {2, 0}, all[] = {0, 1, 2};
    std::uint64_t of_both = 0, of_all = 0, base = 0;
    const std::uint32_t place = rank == 2 ? 0 : 1;
    for (int round = 0; round < 3; ++round) {  // an id may be used again once it is released
      if (rank != 1) EXPECT_OK(session->alloc_domain(7, {both, 2, place}, 100, &of_both, &base));
      EXPECT_OK(session->alloc_domain(8, {all, 3, static_cast<std::uint32_t>(rank)}, 100, &of_all, &base));
      EXPECT_EQ(context_at(of_all).windowsIn[rank], base);
      EXPECT_EQ(word_at(base), 0) << "windows of an id that is used again start zeroed";
      word_at(base) = rank;
      EXPECT_FAILS(session->alloc_domain(8, {all, 3, static_cast<std::uint32_t>(rank)}, 100, &of_all, &base),
                   ErrorKind::kState, "domain 8 is allocated already");
      EXPECT_OK(session->barrier());
      for (int r = 0; r < 3; ++r) EXPECT_EQ(word_at(context_at(of_all).windowsIn[r]), r);
      if (rank != 1) {
        EXPECT_EQ(context_at(of_both).rankId, place);
        EXPECT_EQ(context_at(of_both).rankNum, 2u);
        EXPECT_OK(session->release_domain(7));
      }
      EXPECT_OK(session->release_domain(8));
    }
  });
  EXPECT_EQ(objects(), 0);
}

TEST(Comm, ADomainIsReleasedEvenIfAMemberDied) {
  Shared<Flag> ready;
  const std::uint32_t ids[] = {0, 1};
  const auto allocate = [&](int rank, CommSession& session) {
    std::uint64_t context = 0, base = 0;
    EXPECT_OK(session.alloc_domain(1, {ids, 2, static_cast<std::uint32_t>(rank)}, 100, &context, &base));
  };
  const pid_t victim = fork_rank([&] {
    const Session session = open_rank(1, 2);
    allocate(1, *session);
    raise_flag(*ready);
    pause();
  });
  const pid_t survivor = fork_rank([&] {
    const Session session = open_rank(0, 2);
    allocate(0, *session);
    wait_for(*ready, 2);
    EXPECT_FAILS(session->release_domain(1), ErrorKind::kState, "rank 1 (process ");
    EXPECT_FAILS(session->release_domain(1), ErrorKind::kKey, "not allocated");
  });
  wait_for(*ready, 1);
  kill_now(victim);
  raise_flag(*ready);
  expect_good_end(survivor);
  EXPECT_EQ(objects(), 0);
}

struct Exchange {
  std::array<GlobalWindow, 3> windows;
  Flag prepared, imported;
};

TEST(Comm, GlobalDomainsFindEachOtherByDescriptors) {
  Shared<Exchange> exchange;
  in_ranks(3, [&](int rank) {
    const Session session = open_rank(0, 1, format("node %d", rank).c_str());  // no session is common
    GlobalWindow own{};
    const auto own_rank = static_cast<std::uint32_t>(rank);
    EXPECT_FAILS(session->prepare_global(5, GlobalWindow::kFabric, own_rank, 3, 4096, &own), ErrorKind::kValue,
                 "profile 2 is asked for");
    EXPECT_FAILS(session->prepare_global(5, 1, 3, 3, 4096, &own), ErrorKind::kValue, "rank 3 is outside 0..2");
    EXPECT_FAILS(session->release_global(5), ErrorKind::kKey, "not prepared here");
    EXPECT_OK(session->prepare_global(5, GlobalWindow::kSharedMemory, own_rank, 3, 4096, &own));
    EXPECT_FAILS(session->prepare_global(5, 1, own_rank, 3, 4096, &own), ErrorKind::kState, "prepared already");
    EXPECT_EQ(own.version, 2u);
    EXPECT_EQ(own.bytes, 4096u);
    exchange->windows[static_cast<std::size_t>(2 - rank)] = own;  // any order
    raise_flag(exchange->prepared);
    wait_for(exchange->prepared, 3);
    std::array<GlobalWindow, 3> given = exchange->windows;
    std::uint64_t context = 0, base = 0;
    const auto import = [&] { return session->import_global(5, given.data(), 3, &context, &base); };
    EXPECT_FAILS(session->import_global(5, given.data(), 2, &context, &base), ErrorKind::kValue, "2 descriptors");
    given[0] = given[1];
    EXPECT_FAILS(import(), ErrorKind::kValue, "is a second one of rank");
    given[0].version = 1;
    EXPECT_FAILS(import(), ErrorKind::kValue, "descriptor 0 is none that");
    given = exchange->windows;
    std::strcpy(given[static_cast<std::size_t>(2 - (rank + 1) % 3)].handle, "/etc/passwd");
    EXPECT_FAILS(import(), ErrorKind::kValue, "is none that");
    given = exchange->windows;
    EXPECT_OK(import());
    EXPECT_FAILS(import(), ErrorKind::kState, "imported already");
    word_at(base) = 10 + rank;
    raise_flag(exchange->imported);
    wait_for(exchange->imported, 3);
    for (int r = 0; r < 3; ++r) EXPECT_EQ(word_at(context_at(context).windowsIn[r]), 10 + r);
    EXPECT_EQ(context_at(context).rankId, own_rank);
    const std::string mine = format("/dev/shm/simpler_g%08x_%08x", static_cast<unsigned>(getpid()), 0);
    EXPECT_NE(access(mine.c_str(), F_OK), 0) << "all have it";
    raise_flag(exchange->imported);
    wait_for(exchange->imported, 6);
    EXPECT_OK(session->release_global(5));
    EXPECT_FAILS(session->release_global(5), ErrorKind::kKey, "not prepared here");
  });
}

TEST(Comm, AGlobalWindowOfADeadProcessIsGone) {
  Shared<Exchange> exchange;
  const pid_t dead = fork_rank([&] {
    const Session session = open_rank(0, 1, "node 1");
    EXPECT_OK(session->prepare_global(5, 1, 1, 2, 4096, &exchange->windows[1]));
    raise_flag(exchange->prepared);
    pause();
  });
  wait_for(exchange->prepared, 1);
  const std::string left = std::string("/dev/shm") + exchange->windows[1].handle;
  EXPECT_EQ(access(left.c_str(), F_OK), 0);
  kill_now(dead);
  in_ranks(1, [&](int) {
    const Session session = open_rank(0, 1, "node 0");
    std::uint64_t context = 0, base = 0;
    EXPECT_OK(session->prepare_global(5, 1, 0, 2, 4096, &exchange->windows[0]));
    EXPECT_FAILS(session->import_global(5, exchange->windows.data(), 2, &context, &base), ErrorKind::kState,
                 "window of rank 1 of global domain 5 is gone");
  });
  EXPECT_NE(access(left.c_str(), F_OK), 0);
}

TEST(Comm, AForkedChildIsNoRankOfItsParent) {
  Session session = open_rank(0, 1, format("fork of %d", getpid()).c_str());
  std::uint64_t context = 0;
  EXPECT_OK(session->alloc_windows(4096, &context));
  expect_good_end(fork_rank([&] {
    EXPECT_FAILS(session->require_own(), ErrorKind::kState, "belongs to the parent process");
    EXPECT_FAILS(session->barrier(), ErrorKind::kState, "belongs to the parent process");
    session.reset();  // leaves nothing
  }));
  EXPECT_OK(session->require_own());
  EXPECT_OK(session->barrier());
}

TEST(Comm, DevicesCopyIntoWindowsAndOutOfThem) {
  Session session = open_rank(0, 1, format("copies of %d", getpid()).c_str());
  std::uint64_t context = 0, base = 0;
  EXPECT_OK(session->alloc_windows(4096, &context));
  EXPECT_OK(session->window_base(&base));
  std::unique_ptr<DeviceRunner> runner;
  ASSERT_TRUE(DeviceRunner::open({"a2a3sim", "tensormap_and_ringbuffer", 0, 2, 2}, &runner).ok());
  const int out = 42;
  int in = 0;
  EXPECT_OK(runner->copy_to(base + 4092, &out, 4));
  EXPECT_EQ(word_at(base + 4092), 42);
  EXPECT_OK(runner->copy_from(&in, base + 4092, 4));
  EXPECT_EQ(in, 42);
  EXPECT_FAILS(runner->copy_to(base + 4093, &out, 4), ErrorKind::kValue, "copy_to");
  session.reset();
  EXPECT_FAILS(runner->copy_to(base, &out, 4), ErrorKind::kValue, "copy_to");
}

TEST(ProcessIds, TellTheLivingFromTheDeadAndFromWhoHasTheirNumber) {
  const ProcessId self = ProcessId::self();
  EXPECT_EQ(self.pid, static_cast<std::uint32_t>(getpid()));
  EXPECT_TRUE(self.alive());
  EXPECT_TRUE((ProcessId{self.pid, 0}.alive())) << "no more is known";
  EXPECT_FALSE((ProcessId{self.pid, self.started + 100'000}.alive())) << "another process with the same number";
  Shared<ProcessId> child;
  const pid_t pid = fork_rank([&] { *child = ProcessId::self(); });
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(child->pid, static_cast<std::uint32_t>(pid));
  EXPECT_FALSE(child->alive()) << "it ended, and nobody has waited for it yet";
  expect_good_end(pid);
  EXPECT_FALSE(child->alive());
}

}  // namespace
}  // namespace simpler::host
