#include "base/code_image.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace simpler {
namespace {

// Why the loader must not see these bytes, or nullptr. It maps what the headers say and dies where a file is cut short.
const char* damage_of(const char* bytes, std::size_t count) {
  Elf64_Ehdr header;
  if (count < sizeof header) return "it is shorter than the header of a shared object";
  std::memcpy(&header, bytes, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return "it is no ELF file";
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_DYN) return "it is no 64-bit shared object";
  if (header.e_phentsize != sizeof(Elf64_Phdr)) return "its program headers have an unknown size";
  if (header.e_phoff > count || (count - header.e_phoff) / sizeof(Elf64_Phdr) < header.e_phnum)
    return "it is cut off before the end of its program headers";
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_offset > count || segment.p_filesz > count - segment.p_offset)
      return "it is cut off: a segment ends after its last byte";
  }
  return nullptr;
}

std::string path_of(int file) { return "/proc/self/fd/" + std::to_string(file); }

}  // namespace

CodeImage::~CodeImage() {
  if (handle_ != nullptr) {
    dlclose(handle_);
    // The loader knows objects by the path that they were loaded from, and keeps some for good (unique symbols, destructors
    // of thread-local objects). Then the file must keep its number, or the next image of that number would be this one.
    const std::string path = path_of(file_);
    if (void* kept = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD); kept != nullptr) {
      dlclose(kept);
      return;
    }
  }
  if (file_ >= 0) close(file_);
}

Status CodeImage::load(const void* bytes, std::size_t count, const std::string& name, CodeImage* image) {
  if (const char* damage = damage_of(static_cast<const char*>(bytes), count); damage != nullptr) {
    return fail(ErrorKind::kDevice, format("%s does not load: %s (%zu bytes)", name.c_str(), damage, count));
  }
  CodeImage fresh;
  fresh.file_ = memfd_create(name.substr(0, 200).c_str(), MFD_CLOEXEC);  // the kernel takes at most 249 bytes
  if (fresh.file_ < 0) {
    return fail(ErrorKind::kDevice,
                format("cannot create an in-memory file for %s: %s", name.c_str(), std::strerror(errno)));
  }
  const char* at = static_cast<const char*>(bytes);
  for (std::size_t left = count; left > 0;) {
    const ssize_t written = write(fresh.file_, at, left);
    if (written < 0) {
      if (errno == EINTR) continue;
      return fail(ErrorKind::kMemory,
                  format("cannot hold %zu bytes of code for %s: %s", count, name.c_str(), std::strerror(errno)));
    }
    at += written;
    left -= static_cast<std::size_t>(written);
  }
  const std::string path = path_of(fresh.file_);
  fresh.handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (fresh.handle_ == nullptr) {
    const char* why = dlerror();
    return fail(ErrorKind::kDevice,
                format("%s does not load: %s", name.c_str(), why != nullptr ? why : "unknown reason"));
  }
  *image = std::move(fresh);
  return Status();
}

void* CodeImage::symbol(const char* name) const { return handle_ == nullptr ? nullptr : dlsym(handle_, name); }

}  // namespace simpler
