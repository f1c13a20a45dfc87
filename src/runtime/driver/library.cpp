#include "runtime/driver/library.h"

#include <dlfcn.h>

#include "tl/base/error.h"
#include "tl/base/text.h"

namespace tl::driver {

Library Library::open(const char* override_variable, std::span<const std::string> names) {
  Library library;
  const std::string forced(override_variable == nullptr ? "" : environment(override_variable));
  const std::string* one = &forced;
  const std::span<const std::string> candidates =
      forced.empty() ? names : std::span<const std::string>(one, 1);

  std::string first_problem;
  for (const std::string& name : candidates) {
    library.handle_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library.handle_ != nullptr) {
      library.file_ = name;
      return library;
    }
    const char* text = ::dlerror();
    const std::string problem = text == nullptr ? "" : text;
    // A file that exists but cannot be used (wrong machine, missing dependency) says more than one
    // that does not.
    if (first_problem.empty() && problem.find("No such file") == std::string::npos) {
      first_problem = problem;
    }
  }
  if (!first_problem.empty()) {
    library.reason_ = first_problem;
  } else if (!forced.empty()) {
    library.reason_ = join(forced, " (named by ", override_variable, ") was not found");
  } else {
    library.reason_ = join(names.front(), " was not found");
  }
  return library;
}

void* Library::symbol(const char* name) const noexcept {
  return handle_ == nullptr ? nullptr : ::dlsym(handle_, name);
}

std::vector<std::string> describe_found(std::span<const NamedLibrary> libraries) {
  std::vector<std::string> found;
  for (const NamedLibrary& wanted : libraries) {
    const Library library = Library::open(nullptr, wanted.files);
    if (library) found.push_back(join(wanted.what, " (", library.file(), ")"));
  }
  return found;
}

}  // namespace tl::driver
