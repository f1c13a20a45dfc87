#include "cli/plot_file.h"

#include <CLI/CLI.hpp>
#include <filesystem>

namespace tl::cli {

void add_plot_option(CLI::App& command, std::string& path, const std::string& what) {
  command.add_option("--plot", path, what)->type_name("FILE.svg");
}

PlotFile::PlotFile(const std::string& path) {
  if (!path.empty()) file_ = std::make_unique<files::AtomicFile>(path);
}

void PlotFile::write(const Figure& figure) {
  if (!file_) return;
  file_->write(svg(figure));
  file_->commit();
  file_.reset();
}

std::string file_name(const std::string& path) {
  return path == "-" ? "standard input" : std::filesystem::path(path).filename().string();
}

}  // namespace tl::cli
