#include <dlfcn.h>

#include <stdexcept>
#include <utility>

#include "cli/serve/http.h"
#include "tl/base/error.h"

namespace tl::cli::serve {

namespace {

// Looked for where the program's own run path says: lib and lib/tallow beside its folder.
constexpr const char* kHttpModule = "libtl_http.so";

using MakeServer = decltype(&tl_http_server);

MakeServer open_http_module() {
  void* const module = ::dlopen(kHttpModule, RTLD_NOW | RTLD_LOCAL);  // stays open
  void* const symbol = module != nullptr ? ::dlsym(module, "tl_http_server") : nullptr;
  if (symbol == nullptr) {
    throw Error(ErrorKind::BadFile, "serve",
                "the part of tl that speaks HTTP cannot be opened: ", ::dlerror());
  }
  return reinterpret_cast<MakeServer>(symbol);
}

}  // namespace

HttpServer::HttpServer(const HttpOptions& options, HttpRoutes routes) {
  static const MakeServer make = open_http_module();
  try {
    make(options, routes, calls_);
  } catch (const std::runtime_error& error) {
    throw Error(ErrorKind::BadArgument, "serve", error.what());
  }
}

}  // namespace tl::cli::serve
