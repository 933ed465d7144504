#include "host/process_id.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace simpler::host {
namespace {

// An emulator may tell a process another start of its own than the system tells others; a number comes again much later.
constexpr std::uint64_t kSameStart = 200;  // clock ticks, of which there are 100 in a second

// What the system says of a process: its state and start; false if it says nothing.
bool look_up(std::uint32_t pid, char* state, std::uint64_t* started) {
  char path[32], text[1024];
  std::snprintf(path, sizeof path, "/proc/%u/stat", pid);
  std::FILE* const file = std::fopen(path, "re");
  if (file == nullptr) return false;
  const std::size_t bytes = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  text[bytes] = '\0';
  const char* const name_end = std::strrchr(text, ')');  // the name may hold anything, brackets too
  // After the name: the state, and 18 numbers before the start.
  return name_end != nullptr && std::sscanf(name_end + 1,
                                            " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                                            "%*d %" SCNu64,
                                            state, started) == 2;
}

}  // namespace

ProcessId ProcessId::self() {
  ProcessId self;
  self.pid = static_cast<std::uint32_t>(getpid());
  char state = 0;
  if (!look_up(self.pid, &state, &self.started)) self.started = 0;
  return self;
}

bool ProcessId::alive() const {
  if (kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH) return false;
  char state = 0;
  std::uint64_t now_started = 0;
  if (!look_up(pid, &state, &now_started)) return true;  // it exists, and that is all this process may know
  if (state == 'Z' || state == 'X') return false;
  return started == 0 || (now_started > started ? now_started - started : started - now_started) <= kSameStart;
}

}  // namespace simpler::host
