#include "cli/default_model.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "tl/base/error.h"
#include "tl/base/text.h"

namespace tl::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kVariable = "TL_MODEL";
constexpr const char* kFile = "tallow-nano.gguf";

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// In the order they are looked at. Nothing where the system does not say which program this is.
std::vector<fs::path> places() {
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  if (failed) return {};
  const fs::path bin = program.parent_path();
  return {(bin / "../share/tallow/models" / kFile).lexically_normal(),
          (bin / "../../../models/nano" / kFile).lexically_normal()};
}

}  // namespace

std::string default_model_path() {
  if (const std::string named(environment(kVariable)); !named.empty()) {
    if (is_file(named)) return named;
    throw Error(ErrorKind::BadFile, kVariable, "there is no file '", named, "'");
  }
  std::string looked;
  for (const fs::path& place : places()) {
    if (is_file(place)) return place.string();
    looked += (looked.empty() ? "" : " and ") + place.string();
  }
  throw Error(ErrorKind::BadFile, "model", "none was named, and ", kFile, " is not there (",
              looked.empty() ? "where this program lies is not known" : "looked for " + looked,
              "); name a GGUF file, or set ", kVariable);
}

std::string model_or_default(const std::string& path) {
  return path.empty() ? default_model_path() : path;
}

}  // namespace tl::cli
