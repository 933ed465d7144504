// SharedWindows: memory that several processes of one host share: a page of agreement, then windows of equal size.
//
// What      A POSIX shared memory object with a fixed number of members. Each process joins as one of them; all map all
//           windows. Members meet in barriers. Whoever finds the object empty lays it out, under a file lock, so that
//           nobody waits for its creator.
// Name      It goes when all members have joined, or when the last one leaves of those that did: the memory lives as long
//           as somebody maps it, so nothing stays behind when all members are killed. What members leave that died before
//           all had joined is removed by the next one that joins anything.
// Waits     For members only, until the limit passed; a member that died or left ends them at once. After a failed wait
//           the object is broken: every later wait of any member fails with the same reason.
// Threads   Calls on one object are serialised by the caller. Members may be threads of one process.
// Fork      A forked child has the memory, but is no member: its calls fail, and its destructor only unmaps.
// Lifetime  The destructor leaves. Addresses of windows are valid until then.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"

namespace simpler::host {

class SharedWindows {
 public:
  static constexpr int kMostMembers = 64;
  static constexpr int kNoWindow = -1;

  struct Place {
    std::string name;   // of the object: "/simpler_..."
    std::string label;  // what it is, for texts
    std::uint64_t key;  // members with different ones mean different things
    int members;        // 1..kMostMembers
    int member;         // which of them joins
    int windows;
    int own_window;      // kNoWindow: none
    bool create = true;  // else it is there already
    std::int64_t limit_ms = 120'000;
  };

  // Waits for nobody.
  static Status join(const Place& place, std::unique_ptr<SharedWindows>* joined);
  ~SharedWindows();
  SharedWindows(const SharedWindows&) = delete;
  SharedWindows& operator=(const SharedWindows&) = delete;

  // Gives the windows their size, rounded up to pages, which is the same for all members; maps them, and reserves the
  // memory of the own one. Windows start zeroed. Once.
  Status allocate(std::size_t bytes);
  // Maps windows that another member has allocated.
  Status attach();
  // Waits until every member is here.
  Status barrier();

  std::size_t window_bytes() const { return window_bytes_; }  // 0: not allocated
  std::uint64_t window(int index) const { return base_ + static_cast<std::uint64_t>(index) * window_bytes_; }

  // Whether a range lies in a window that this process maps.
  static bool hold(std::uint64_t address, std::size_t bytes);

 private:
  struct Header;
  enum class Cause : std::uint32_t;
  class Lock;

  explicit SharedWindows(const Place& place);
  static void remove_abandoned(const std::string& except);
  static bool abandoned(const Header& header);
  bool owned() const;
  Status enter(bool* again);
  Status open_error() const;
  Status map_windows();
  Status wait(const std::function<bool()>& done, const std::function<bool(int)>& missing);
  Status broken() const;
  void break_off(Cause cause, int member);
  void announce();
  void leave();

  const Place place_;
  const std::uint32_t pid_;
  int file_ = -1;
  Header* header_ = nullptr;
  bool joined_ = false;
  std::size_t window_bytes_ = 0;
  std::uint64_t base_ = 0;
};

}  // namespace simpler::host
