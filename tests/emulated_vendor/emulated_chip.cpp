// The only thing in which the libraries of two chips differ.
namespace simpler::test {
extern const char* const kEmulatedChip;
const char* const kEmulatedChip = SIMPLER_EMULATED_CHIP;  // of executor::kArchProfiles
}  // namespace simpler::test
