// What this process has: open files, and threads that live.
#pragma once
#include <dirent.h>

#include <cstddef>
#include <fstream>
#include <sstream>
#include <string>

namespace simpler::test {

template <class Counted> std::size_t count_entries(const char* folder, Counted counted) {
  std::size_t count = 0;
  DIR* const dir = opendir(folder);
  while (const dirent* entry = readdir(dir)) count += counted(std::string(entry->d_name)) ? 1 : 0;
  closedir(dir);
  return count;
}

inline std::size_t open_files() {
  return count_entries("/proc/self/fd", [](const std::string& name) { return name[0] != '.'; });
}

// A thread that was joined may still be listed for as long as the system takes to bury it; it is known by its flags.
inline std::size_t living_threads() {
  constexpr unsigned long kExiting = 0x4;  // PF_EXITING, which is set before whoever joins is woken
  return count_entries("/proc/self/task", [](const std::string& name) {
    if (name[0] == '.') return false;
    std::ifstream file("/proc/self/task/" + name + "/stat");
    std::stringstream text;
    text << file.rdbuf();
    const std::size_t behind_name = text.str().rfind(')');  // which is in brackets and may hold anything
    if (behind_name == std::string::npos) return false;     // it is gone
    std::istringstream fields(text.str().substr(behind_name + 1));
    std::string state;
    long parent = 0, group = 0, session = 0, terminal = 0, terminal_group = 0;
    unsigned long flags = 0;
    fields >> state >> parent >> group >> session >> terminal >> terminal_group >> flags;
    return (flags & kExiting) == 0;
  });
}

}  // namespace simpler::test
