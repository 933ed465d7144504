// The board: a Driver table over the vendor's libraries (CANN), which are found when it is opened.
//
// What      Each entry is the vendor's call that driver.h names, or a few of them, and nothing else. What the chip or the
//           vendor's library lacks answers kUnsupported.
// Libraries libruntime.so, libacl_rt.so (or libascendcl.so), libascend_hal.so and libunified_dlog.so (or
//           libascendalog.so): where the loader looks (LD_LIBRARY_PATH), else $ASCEND_HOME_PATH/lib64 and the driver's
//           usual folder. With `folder` there and nowhere else. They stay loaded.
// Status    Not yet run on a board; see docs/board.md.
// Threads   As Driver says.
// Lifetime  The table is valid while the object lives; several may be open at once.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "driver/driver.h"

namespace simpler::driver {

class CannDriver {
 public:
  // arch: a2a3 or a5. Fails with kDevice and a text that names what is missing and how to install it.
  static Status open(std::string_view arch, const std::string& folder, std::unique_ptr<CannDriver>* driver);
  ~CannDriver();
  CannDriver(const CannDriver&) = delete;
  CannDriver& operator=(const CannDriver&) = delete;
  const Driver& table() const;

 private:
  class Impl;
  explicit CannDriver(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
  Driver table_;
};

// The id that hal calls know a device by, from the list in ASCEND_RT_VISIBLE_DEVICES (nullptr: not set): as the vendor's
// runtime reads it, up to the first thing that is no number. -1: the list does not name the device, or does not ascend.
int visible_device(const char* list, int device);

}  // namespace simpler::driver
