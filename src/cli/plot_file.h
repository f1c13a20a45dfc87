// --plot FILE: a picture that a command writes when its work is done.
#pragma once

#include <memory>
#include <string>

#include "base/chart.h"
#include "tensor/atomic_file.h"

namespace CLI {  // NOLINT(readability-identifier-naming): it is theirs
class App;
}

namespace tl::cli {

void add_plot_option(CLI::App& command, std::string& path, const std::string& what);

// Opened before the work, so that a path nobody can write to is told at once and not an hour later.
// The file appears when it is complete.
class PlotFile {
 public:
  PlotFile() = default;  // none is wanted
  explicit PlotFile(const std::string& path);

  bool is_wanted() const noexcept { return file_ != nullptr; }
  void write(const Figure& figure);

 private:
  std::unique_ptr<files::AtomicFile> file_;
};

// The last part of a path: "train.tl" of "examples/train.tl".
std::string file_name(const std::string& path);

}  // namespace tl::cli
