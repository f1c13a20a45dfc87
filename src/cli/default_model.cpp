#include "cli/default_model.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "tl/base/error.h"
#include "tl/base/text.h"

namespace tl::cli {

namespace {

constexpr const char* kModelVariable = "TL_MODEL";
constexpr const char* kModelFile = "tallow-nano.gguf";

bool is_model_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

// In the order they are looked at. Nothing where the system does not say which program this is.
std::vector<std::filesystem::path> model_places() {
  std::error_code failed;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed) return {};
  const std::filesystem::path bin = program.parent_path();
  return {(bin / "../share/tallow/models" / kModelFile).lexically_normal(),
          (bin / "../../../models/nano" / kModelFile).lexically_normal()};
}

}  // namespace

std::string default_model_path() {
  if (const std::string named(environment(kModelVariable)); !named.empty()) {
    if (is_model_file(named)) return named;
    throw Error(ErrorKind::BadFile, kModelVariable, "there is no file '", named, "'");
  }
  std::string looked;
  for (const std::filesystem::path& place : model_places()) {
    if (is_model_file(place)) return place.string();
    looked += (looked.empty() ? "" : " and ") + place.string();
  }
  throw Error(ErrorKind::BadFile, "model", "none was named, and ", kModelFile, " is not there (",
              looked.empty() ? "where this program lies is not known" : "looked for " + looked,
              "); name a GGUF file, or set ", kModelVariable);
}

std::string model_or_default(const std::string& path) {
  return path.empty() ? default_model_path() : path;
}

}  // namespace tl::cli
