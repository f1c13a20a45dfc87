// The one exception type this library throws.
//
// Every failure is a tl::Error with a kind that a program can switch on and a message that starts
// with the operation. Failures that carry numbers a caller may want to act on (how much memory was
// asked for, which kernel is missing) are subclasses with those numbers as members; catching
// tl::Error catches them all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tl {

enum class ErrorKind : std::uint8_t {
  BadArgument,    // a value the caller passed cannot be used
  SizeMismatch,   // two sizes that must be equal are not
  ShapeMismatch,  // the shapes of two tensors do not go together
  DTypeMismatch,  // the dtypes of two tensors do not go together
  InvalidIndex,   // an index that a tensor holds is out of range
  Overflow,       // a count times a size does not fit in 64 bits
  Unsupported,    // valid, but not offered here
  BadFile,        // a file is missing, unreadable, too short or corrupt
  OutOfMemory,    // the device has no room, even after the pool was trimmed
  DriverMissing,  // the vendor's library is not installed or cannot be used
  NoSuchDevice,   // the driver is there, the device is not
  WrongDevice,    // operands live on devices that do not go together
  Device,         // the driver reported a failure
  DeviceLost,     // the device stopped working; every later call on it fails
  MissingKernel,  // a module has no such kernel
  ModuleLoad,     // no usable image of a module for this device
  CompileFailed,  // the run-time compiler refused the source
};

std::string_view name(ErrorKind kind) noexcept;

// Writes the parts one after another, as operator<< would.
template <class... Parts>
std::string join(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

struct Error : std::runtime_error {
  // The message is "<where>: <parts joined>", e.g. "softmax: axis 3 is outside shape (2, 4)".
  template <class... Parts>
  Error(ErrorKind k, std::string_view where, const Parts&... parts)
      : std::runtime_error(join(where, ": ", parts...)), kind(k) {}

  ErrorKind kind;
};

struct OutOfMemory : Error {
  // `held` lists who holds the memory, largest first; it may be empty.
  OutOfMemory(std::string_view where, std::string device_name, std::uint64_t requested_bytes,
              std::uint64_t free_bytes, std::uint64_t total_bytes, std::uint64_t pooled_bytes,
              std::string_view held = {});

  std::string device;
  std::uint64_t requested;  // bytes
  std::uint64_t free;       // bytes the driver reports as free
  std::uint64_t total;      // bytes of the device
  std::uint64_t pooled;     // bytes this process keeps for reuse
};

struct SizeMismatch : Error {
  SizeMismatch(std::string_view where, std::uint64_t expected_count, std::uint64_t actual_count);

  std::uint64_t expected;  // elements
  std::uint64_t actual;
};

struct NoSuchDevice : Error {
  NoSuchDevice(std::string_view where, std::string_view device_kind, int device_index,
               int device_count);

  int index;
  int count;
};

// A driver call failed. `code` is the driver's own number.
struct DeviceFault : Error {
  DeviceFault(ErrorKind k, std::string_view where, std::string device_name, int driver_code,
              std::string_view driver_text);

  std::string device;
  int code;
};

struct MissingKernel : Error {
  MissingKernel(std::string module_name, std::string kernel_name, std::string device_name,
                std::string architecture_name);

  std::string module;
  std::string kernel;
  std::string device;
  std::string architecture;
};

struct ModuleLoad : Error {
  ModuleLoad(std::string module_name, std::string device_name, std::string architecture_name,
             std::vector<std::string> embedded_architectures, std::string_view why);

  std::string module;
  std::string device;
  std::string architecture;
  std::vector<std::string> embedded;  // architectures there are images for
};

struct CompileFailed : Error {
  CompileFailed(std::string_view where, std::string_view why, std::string compiler_log);

  std::string log;
};

// Multiplies, or throws Overflow with a message that names `where` and both factors.
std::uint64_t checked_multiply(std::string_view where, std::uint64_t a, std::uint64_t b);

}  // namespace tl
