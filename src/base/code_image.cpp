#include "base/code_image.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace simpler {

CodeImage::~CodeImage() {
  if (handle_ != nullptr) dlclose(handle_);
  if (file_ >= 0) close(file_);
}

Status CodeImage::load(const void* bytes, std::size_t count, const std::string& name, CodeImage* image) {
  CodeImage fresh;
  fresh.file_ = memfd_create(name.substr(0, 200).c_str(), MFD_CLOEXEC);  // the kernel takes at most 249 bytes
  if (fresh.file_ < 0) {
    return fail(ErrorKind::kDevice, format("cannot create an in-memory file for %s: %s", name.c_str(), std::strerror(errno)));
  }
  const char* at = static_cast<const char*>(bytes);
  for (std::size_t left = count; left > 0;) {
    const ssize_t written = write(fresh.file_, at, left);
    if (written < 0) {
      if (errno == EINTR) continue;
      return fail(ErrorKind::kMemory, format("cannot hold %zu bytes of code for %s: %s", count, name.c_str(), std::strerror(errno)));
    }
    at += written;
    left -= static_cast<std::size_t>(written);
  }
  const std::string path = "/proc/self/fd/" + std::to_string(fresh.file_);
  fresh.handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (fresh.handle_ == nullptr) {
    const char* why = dlerror();
    return fail(ErrorKind::kDevice, format("%s does not load: %s", name.c_str(), why != nullptr ? why : "unknown reason"));
  }
  *image = std::move(fresh);
  return Status();
}

void* CodeImage::symbol(const char* name) const { return handle_ == nullptr ? nullptr : dlsym(handle_, name); }

}  // namespace simpler
