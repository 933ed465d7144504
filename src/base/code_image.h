// CodeImage: a private copy of a shared object, loaded from memory.
//
// What      The bytes go into an anonymous file (memfd) that is loaded by its /proc path. Each image has a file of its
//           own, so two images of the same bytes share neither globals nor addresses. The file keeps a readable name for
//           debuggers, profilers and sanitizers. Symbols stay local to the image.
// Trust     A file that was cut off, or is no shared object, is refused. What its bytes say is trusted beyond that.
// Lifetime  Unloaded by the destructor: nothing may run in it any more. Movable. An object that the loader keeps for good
//           keeps its file too.
// Threads   Construction and destruction from any thread (the loader has its own lock); symbol() too.
#pragma once
#include <cstddef>
#include <string>
#include <utility>

#include "base/status.h"

namespace simpler {

class CodeImage {
 public:
  CodeImage() = default;
  ~CodeImage();
  CodeImage(CodeImage&& other) noexcept { swap(other); }
  CodeImage& operator=(CodeImage&& other) noexcept {
    swap(other);
    return *this;
  }

  // Fails with the loader's text, for instance an undefined symbol.
  static Status load(const void* bytes, std::size_t count, const std::string& name, CodeImage* image);

  bool loaded() const { return handle_ != nullptr; }
  // nullptr if the image does not export it.
  void* symbol(const char* name) const;

 private:
  void swap(CodeImage& other) {
    std::swap(handle_, other.handle_);
    std::swap(file_, other.file_);
  }
  void* handle_ = nullptr;
  int file_ = -1;  // kept open: debuggers read it through /proc
};

}  // namespace simpler
