#include "driver/soft/kernel_hooks.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <string>

#include "base/log.h"
#include "executor/executor.h"
#include "sim_hooks.h"
#include "tile/available_kernels.h"

namespace simpler::driver {
namespace {

constexpr long kParkNanoseconds = 1'000'000;  // words may be written without a wake-up: look again after this time

executor::Core& core() {
  executor::Core* core = executor::current_core();
  if (core == nullptr) throw std::runtime_error("a tile instruction was used outside a kernel call of the simulator");
  return *core;
}

void* tile_memory(std::uint32_t location, std::uint64_t* bytes) {
  void* memory = core().tile_memory(location, bytes);
  if (memory == nullptr)
    throw std::runtime_error("the simulated core has no such tile memory, or the host has no memory for it");
  return memory;
}

std::uint32_t sub_block_id() { return static_cast<std::uint32_t>(core().lane()); }

std::uint32_t task_cores(std::uint32_t kinds) { return core().task_cores(kinds); }

void* pipe_state(std::uint64_t key, std::uint64_t bytes) { return core().shared().piece(key, bytes); }

void park(const volatile std::uint32_t* word, std::uint32_t seen) {
  if (executor::current_run_failed()) throw executor::KernelEnded("the run failed while this kernel was waiting");
  const timespec limit{0, kParkNanoseconds};
  syscall(SYS_futex, word, FUTEX_WAIT, seen, &limit, nullptr, 0);
}
void unpark(const volatile std::uint32_t* word) { syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

// Unwinds the kernel; the worker turns it into the run's failure.
void check_failed(const char* text) { throw std::runtime_error(text); }

// The loops that SIMPLER_SIM_TILE names: those for any processor, those of one instruction set, or the best there are.
const SimplerTileKernels* chosen_kernels() {
  const SimplerTileKernels* const* const available = tile::available_kernels();
  const char* text = std::getenv("SIMPLER_SIM_TILE");
  if (text == nullptr || *text == '\0' || std::strcmp(text, "auto") == 0) return *available;
  std::string names = "auto";
  for (const SimplerTileKernels* const* table = available; *table != nullptr; ++table) {
    if (std::strcmp(text, (*table)->target) == 0) return *table;
    names += std::string(", ") + (*table)->target;
  }
  log::host(log::Level::kWarn, __func__, "SIMPLER_SIM_TILE=%s is ignored: this processor and build have %s", text,
            names.c_str());
  return *available;
}

void tile_written(const SimplerTileKind* kind, const void* base, std::int32_t row, std::int32_t col, std::int32_t rows,
                  std::int32_t cols) {
  executor::Core& running = core();
  std::uint64_t bytes = 0;
  running.written_tiles().write(kind->memory, running.tile_memory(kind->memory, &bytes),
                                executor::tile_region(*kind, base, row, col, rows, cols));
}
void tile_read(const SimplerTileKind* kind, const void* base, std::int32_t row, std::int32_t col, std::int32_t rows,
               std::int32_t cols, const char* instruction) {
  executor::Core& running = core();
  std::uint64_t bytes = 0;
  const std::string fault = running.written_tiles().fault_of_read(*kind, running.tile_memory(kind->memory, &bytes),
                                                                  base, row, col, rows, cols, instruction);
  if (!fault.empty()) check_failed(fault.c_str());
}

const SimplerSimHooks& hooks() {
  static const SimplerSimHooks table = {SIMPLER_SIM_HOOKS_VERSION,
                                        sizeof(SimplerSimHooks),
                                        tile_memory,
                                        sub_block_id,
                                        pipe_state,
                                        park,
                                        unpark,
                                        check_failed,
                                        chosen_kernels(),
                                        task_cores,
                                        tile_written,
                                        tile_read};
  return table;
}

}  // namespace

void register_kernel_hooks(const CodeImage& image) {
  if (void* symbol = image.symbol("simpler_sim_register_hooks")) {
    reinterpret_cast<SimplerSimRegisterHooks>(symbol)(&hooks());
  }
  // The vendor's tile library asks for these two in its own way.
  if (void* symbol = image.symbol("pto_sim_register_hooks")) {
    reinterpret_cast<void (*)(void*, void*)>(symbol)(reinterpret_cast<void*>(&sub_block_id),
                                                     reinterpret_cast<void*>(&pipe_state));
  }
}

}  // namespace simpler::driver
