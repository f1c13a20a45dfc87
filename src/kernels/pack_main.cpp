// tl-pack: makes a kernel pack out of compiled images and source texts, or lists one.
//
//   tl-pack OUT [--level N] [--image MODULE:ARCHITECTURE:KIND:FILE]... [--source NAME:FILE]...
//   tl-pack --list FILE
//
// An argument @FILE stands for the lines of that file, one argument each. KIND is cubin, ptx, hsaco
// or host. A pack made from images of your own, named in TL_KERNEL_PACKS, adds an architecture to a
// program that is already built. Kernels in it begin with await_earlier() of gpu.h: those for sm_90
// and newer are launched before what is ahead of them has ended.
#include <charconv>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "runtime/kernel_pack.h"
#include "tl/base/error.h"
#include "tl/base/text.h"

namespace {

using tl::Error;
using tl::ErrorKind;

constexpr std::string_view kUsage =
    "usage: tl-pack OUT [--level N] [--image MODULE:ARCHITECTURE:KIND:FILE]... "
    "[--source NAME:FILE]...\n"
    "       tl-pack --list FILE\n"
    "@FILE stands for the lines of FILE; KIND is cubin, ptx, hsaco or host;\n"
    "N is how hard to compress what follows it, from 1 (quick) to 19 (small, as it is unless "
    "told)\n";

// Cuts `text` at its first `count` - 1 colons; the last part may have more of them.
std::vector<std::string> cut(const std::string& text, std::size_t count) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  while (parts.size() + 1 < count) {
    const std::size_t colon = text.find(':', from);
    if (colon == std::string::npos) break;
    parts.push_back(text.substr(from, colon - from));
    from = colon + 1;
  }
  parts.push_back(text.substr(from));
  if (parts.size() != count) {
    throw Error(ErrorKind::BadArgument, "tl-pack", "'", text, "' should have ", count,
                " parts with colons between them");
  }
  return parts;
}

std::vector<std::string> expand(int argc, char** argv) {
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (!argument.starts_with('@')) {
      arguments.push_back(argument);
      continue;
    }
    std::ifstream in(argument.substr(1));
    if (!in) throw Error(ErrorKind::BadFile, "tl-pack", "cannot read ", argument.substr(1));
    for (std::string line; std::getline(in, line);) {
      if (!line.empty()) arguments.push_back(line);
    }
  }
  return arguments;
}

void list(const std::string& path) {
  const tl::KernelPack pack = tl::KernelPack::from_file(path);
  std::size_t unpacked = 0;
  for (const tl::PackEntry& entry : pack.entries()) {
    static_cast<void>(pack.image(entry));  // says so when an image is damaged
    unpacked += entry.bytes;
    std::cout << std::left << std::setw(8) << name(entry.kind) << std::setw(24) << entry.name
              << std::setw(14) << entry.architecture << std::right << std::setw(10) << entry.bytes
              << std::setw(10) << entry.frame_bytes << '\n';
  }
  std::cout << pack.entries().size() << " entries, " << tl::format_bytes(unpacked) << " in "
            << tl::format_bytes(pack.total_bytes()) << '\n';
}

int parse_level(std::string_view text) {
  int level = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), level);
  if (status != std::errc{} || end != text.data() + text.size() || level < 1 ||
      level > tl::PackWriter::kSmallest) {
    throw Error(ErrorKind::BadArgument, "tl-pack", "--level must be from 1 to ",
                tl::PackWriter::kSmallest, ", got '", text, "'");
  }
  return level;
}

void write(const std::vector<std::string>& arguments) {
  const std::string& out = arguments[0];
  tl::PackWriter writer;
  for (std::size_t i = 1; i < arguments.size(); i += 2) {
    if (i + 1 == arguments.size()) {
      throw Error(ErrorKind::BadArgument, "tl-pack", arguments[i], " needs a value");
    }
    if (arguments[i] == "--level") {
      writer.set_level(parse_level(arguments[i + 1]));
    } else if (arguments[i] == "--image") {
      const auto parts = cut(arguments[i + 1], 4);
      const auto kind = tl::parse_pack_kind(parts[2]);
      if (!kind) throw Error(ErrorKind::BadArgument, "tl-pack", "unknown kind '", parts[2], "'");
      writer.add_image(parts[0], parts[1], *kind, tl::read_whole_file("tl-pack", parts[3]));
    } else if (arguments[i] == "--source") {
      const auto parts = cut(arguments[i + 1], 2);
      const auto bytes = tl::read_whole_file("tl-pack", parts[1]);
      writer.add_source(parts[0], {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    } else {
      throw Error(ErrorKind::BadArgument, "tl-pack", "unknown option '", arguments[i], "'");
    }
  }
  const std::vector<std::byte> bytes = writer.finish();
  const std::string temporary = out + ".tmp";
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file || std::rename(temporary.c_str(), out.c_str()) != 0) {
    throw Error(ErrorKind::BadFile, "tl-pack", "cannot write ", out);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments = expand(argc, argv);
    if (arguments.size() == 2 && arguments[0] == "--list") {
      list(arguments[1]);
    } else if (!arguments.empty() && !arguments[0].starts_with('-')) {
      write(arguments);
    } else {
      std::cerr << kUsage;
      return 2;
    }
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
