// A shared library opened at run time, and its symbols.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace tl::driver {

class Library {
 public:
  // Opens the first of `names` that can be opened; the library stays open for the life of the
  // process. When the environment variable `override_variable` is set, only the file it names is
  // tried.
  static Library open(const char* override_variable, std::span<const std::string> names);

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  const std::string& file() const noexcept { return file_; }
  // Why nothing was opened: "libcuda.so.1 was not found", or what the loader said of a file that is
  // there but broken.
  const std::string& reason() const noexcept { return reason_; }

  void* symbol(const char* name) const noexcept;  // null when absent

  template <class Function>
  bool load(Function*& slot, const char* name) const noexcept {
    slot = reinterpret_cast<Function*>(symbol(name));
    return slot != nullptr;
  }

 private:
  void* handle_ = nullptr;
  std::string file_;
  std::string reason_;
};

// "cuBLASLt (libcublasLt.so.13)" for each of `libraries` (what it is called, and its file names,
// newest first) that can be opened. For display only; what uses a library opens it itself.
struct NamedLibrary {
  std::string what;
  std::vector<std::string> files;
};
std::vector<std::string> describe_found(std::span<const NamedLibrary> libraries);

// Fills function pointers and remembers the first name that was missing.
class Symbols {
 public:
  explicit Symbols(const Library& library) : library_(library) {}

  template <class Function>
  Symbols& need(Function*& slot, const char* name) {
    if (!library_.load(slot, name) && missing_.empty()) missing_ = name;
    return *this;
  }
  template <class Function>
  Symbols& want(Function*& slot, const char* name) {
    library_.load(slot, name);
    return *this;
  }
  const std::string& missing() const noexcept { return missing_; }  // empty when all are there

 private:
  const Library& library_;
  std::string missing_;
};

}  // namespace tl::driver
