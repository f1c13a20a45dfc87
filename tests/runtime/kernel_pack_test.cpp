#include "runtime/kernel_pack.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "kernels/embedded.h"
#include "runtime/digest.h"
#include "runtime/pack_registry.h"
#include "runtime/scratch.h"
#include "tl/base/error.h"
#include "tl/kernels/modules.h"

namespace tl {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::string_view text) {
  const auto view = std::as_bytes(std::span<const char>(text.data(), text.size()));
  return {view.begin(), view.end()};
}

Bytes small_pack() {
  PackWriter writer;
  writer.add_image("fill", "sm_90", PackKind::Cubin, bytes_of("machine code for fill"));
  writer.add_image("fill", "compute_75", PackKind::Ptx, bytes_of(".version 8.0"));
  writer.add_image("fill", "gfx1100", PackKind::Hsaco, bytes_of("one image"));
  writer.add_image("fill", "gfx1101", PackKind::Hsaco, bytes_of("one image"));
  writer.add_source("fill.cu", "#include \"gpu.h\"\n");
  writer.add_source("empty.h", "");
  return writer.finish();
}

// Everything a pack says, to compare packs by.
using Content = std::vector<std::tuple<PackKind, std::string, std::string, Bytes>>;

Content content_of(const KernelPack& pack) {
  Content all;
  for (const PackEntry& e : pack.entries()) {
    all.emplace_back(e.kind, e.name, e.architecture, pack.image(e));
  }
  return all;
}

// The content, or nothing when the bytes are refused as they should be.
std::optional<Content> read(const Bytes& bytes) {
  try {
    return content_of(KernelPack(bytes, "test"));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind, ErrorKind::BadFile) << error.what();
    EXPECT_NE(std::string(error.what()).find("kernel pack: test, byte "), std::string::npos)
        << error.what();
    return std::nullopt;
  }
}

template <class F>
std::string refusal(ErrorKind kind, F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind, kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(Digest, MatchesThePublishedVectors) {
  EXPECT_EQ(hex_digest(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex_digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex_digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex_digest(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Digest, DoesNotDependOnHowTheBytesArrive) {
  const std::string text(300, 'x');
  const std::string whole = hex_digest(text);
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    Digest one;
    one.add(std::string_view(text).substr(0, cut));
    one.add(std::string_view(text).substr(cut));
    Digest all;
    all.add(text);
    ASSERT_EQ(one.finish(), all.finish()) << cut;
  }
  EXPECT_EQ(hex_digest(text, 32), whole.substr(0, 32));
}

TEST(KernelPack, GivesBackWhatWasPutIn) {
  const Bytes bytes = small_pack();
  const KernelPack pack(bytes, "test");
  const Content expected{
      {PackKind::Cubin, "fill", "sm_90", bytes_of("machine code for fill")},
      {PackKind::Ptx, "fill", "compute_75", bytes_of(".version 8.0")},
      {PackKind::Hsaco, "fill", "gfx1100", bytes_of("one image")},
      {PackKind::Hsaco, "fill", "gfx1101", bytes_of("one image")},
      {PackKind::Source, "fill.cu", "", bytes_of("#include \"gpu.h\"\n")},
      {PackKind::Source, "empty.h", "", {}},
  };
  EXPECT_EQ(content_of(pack), expected);
  EXPECT_EQ(pack.text(pack.entries()[4]), "#include \"gpu.h\"\n");
}

TEST(KernelPack, StoresEqualImagesOnce) {
  const Bytes bytes = small_pack();
  const KernelPack pack(bytes, "test");
  EXPECT_EQ(pack.entries()[2].frame_offset, pack.entries()[3].frame_offset);
  EXPECT_NE(pack.entries()[1].frame_offset, pack.entries()[2].frame_offset);
}

TEST(KernelPack, AnEmptyPackIsAPack) {
  const Bytes bytes = PackWriter().finish();
  EXPECT_EQ(bytes.size(), 48u);
  EXPECT_TRUE(KernelPack(bytes, "test").entries().empty());
}

TEST(KernelPack, EveryFlippedBitIsFoundOrHarmless) {
  const Bytes good = small_pack();
  const auto expected = read(good);
  ASSERT_TRUE(expected);
  std::size_t harmless = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes bad = good;
      bad[at] ^= static_cast<std::byte>(1 << bit);
      if (const auto got = read(bad)) {
        ++harmless;
        ASSERT_EQ(got, expected) << "byte " << at << " bit " << bit;
      }
    }
  }
  // A bit that may change unseen is one that zstd does not use.
  EXPECT_LT(harmless, good.size() / 10);
}

TEST(KernelPack, EveryCutIsFound) {
  const Bytes good = small_pack();
  for (std::size_t size = 0; size < good.size(); ++size) {
    // Of its own size, so that a sanitizer sees a read past the end.
    const Bytes cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
    ASSERT_FALSE(read(cut)) << size;
  }
  Bytes longer = good;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(read(longer));
}

// The index's own checksum stops accidents before the other checks see them. Someone who means it
// can make a right checksum, so the checks are tried without its protection too.
TEST(KernelPack, EveryFieldIsCheckedEvenUnderARightChecksum) {
  const Bytes good = small_pack();
  const auto number = [&](std::size_t at) {
    std::uint64_t value = 0;
    std::memcpy(&value, good.data() + at, sizeof value);
    return value;
  };
  const std::size_t index_end = 48 + static_cast<std::size_t>(number(16));
  const auto sealed = [&](Bytes bytes) {
    std::uint64_t index_bytes = 0;
    std::memcpy(&index_bytes, bytes.data() + 16, sizeof index_bytes);
    const std::size_t covered = index_bytes <= bytes.size() - 48 ? index_bytes : 0;
    Digest digest;
    digest.add(std::span(bytes).first(32));
    digest.add(std::span(bytes).subspan(48, covered));
    const DigestBytes check = digest.finish();
    std::memcpy(bytes.data() + 32, check.data(), 16);
    return bytes;
  };
  ASSERT_EQ(sealed(good), good);
  std::mt19937 random(7);
  std::size_t refused = 0;
  for (std::size_t at = 8; at < index_end; ++at) {
    for (const int value : {0, 1, 2, 127, 128, 255, static_cast<int>(random() % 256)}) {
      Bytes bad = good;
      bad[at] = static_cast<std::byte>(value);
      refused += !read(sealed(bad));  // anything but a crash or a read outside
    }
  }
  EXPECT_GT(refused, index_end);
}

TEST(KernelPack, ALieAboutTheSizeOfTheContentIsRefused) {
  Bytes bad = small_pack();
  const std::size_t content_at = 48 + 4;
  for (const std::uint32_t claim : {0u, 20u, 22u, 1u << 20, 0xffffffffu}) {
    std::memcpy(bad.data() + content_at, &claim, sizeof claim);
    std::uint64_t index_bytes = 0;
    std::memcpy(&index_bytes, bad.data() + 16, sizeof index_bytes);
    Digest digest;
    digest.add(std::span(bad).first(32));
    digest.add(std::span(bad).subspan(48, index_bytes));
    const DigestBytes check = digest.finish();
    std::memcpy(bad.data() + 32, check.data(), 16);
    EXPECT_FALSE(read(bad)) << claim;
  }
}

TEST(KernelPack, SaysWhatIsWrongAndWhere) {
  Bytes bytes = small_pack();
  bytes[8] = std::byte{9};
  EXPECT_EQ(refusal(ErrorKind::BadFile, [&] { KernelPack(bytes, "mine.tlpack"); }),
            "kernel pack: mine.tlpack, byte 8: the pack is of version 9, this program reads "
            "version 2");
  EXPECT_EQ(refusal(ErrorKind::BadFile, [&] { KernelPack(bytes_of("no"), "x"); }),
            "kernel pack: x, byte 2: the pack ends inside its header of 48 bytes");
  EXPECT_EQ(
      refusal(ErrorKind::BadFile, [] { KernelPack::from_file("/nonexistent/packs/a.tlpack"); }),
      "kernel pack: cannot read /nonexistent/packs/a.tlpack: No such file or directory");
  EXPECT_EQ(refusal(ErrorKind::BadFile, [] { KernelPack::from_file("/"); }),
            "kernel pack: cannot read /: Is a directory");
}

TEST(KernelPack, TheWriterRefusesNamesItCouldNotReadBack) {
  PackWriter writer;
  const auto refuse = [&](std::string_view module, std::string_view architecture) {
    refusal(ErrorKind::BadArgument,
            [&] { writer.add_image(module, architecture, PackKind::Cubin, {}); });
  };
  refuse("", "sm_90");
  refuse("fill", "");
  refuse("fi ll", "sm_90");
  refuse("fill", "sm\n90");
  refuse(std::string(256, 'a'), "sm_90");
  refusal(ErrorKind::BadArgument, [&] { writer.add_source("", "text"); });
  refusal(ErrorKind::BadArgument, [&] { writer.add_image("fill", "sm_90", PackKind::Source, {}); });
  EXPECT_EQ(writer.finish().size(), 48u);
}

TEST(PackRegistry, FilesComeBeforeWhatIsBuiltIn) {
  const ScratchFolder folder;
  PackWriter writer;
  writer.add_source("gpu.h", "from the file");
  const Bytes file = writer.finish();
  std::ofstream(folder.file("a.tlpack"), std::ios::binary)
      .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));

  PackWriter other;
  other.add_source("gpu.h", "built in");
  other.add_source("more.h", "more");
  const Bytes built_in = other.finish();

  PackRegistry registry(":" + folder.file("a.tlpack") + "::");
  registry.add(built_in, "built in");
  const auto packs = registry.packs();
  ASSERT_EQ(packs.size(), 2u);
  EXPECT_FALSE(packs[0]->embedded);
  EXPECT_TRUE(packs[1]->embedded);
  EXPECT_EQ(registry.packs(), packs) << "read once, then the same";

  const auto sources = registry.sources();
  ASSERT_EQ(sources.size(), 2u);
  EXPECT_EQ(sources[0].text, "from the file");
  EXPECT_EQ(sources[1].text, "more");
}

TEST(PackRegistry, AMissingOrDamagedFileIsAnErrorEveryTime) {
  const ScratchFolder folder;
  std::ofstream(folder.file("bad.tlpack")) << "TLPACK, or so it says, and then nothing of the kind";
  PackRegistry missing(folder.file("no.tlpack"));
  PackRegistry damaged(folder.file("bad.tlpack"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(
        refusal(ErrorKind::BadFile, [&] { missing.packs(); }),
        "kernel pack: cannot read " + folder.file("no.tlpack") + ": No such file or directory");
    EXPECT_EQ(refusal(ErrorKind::BadFile, [&] { damaged.sources(); }),
              "kernel pack: " + folder.file("bad.tlpack") + ", byte 0: this is no kernel pack");
  }
}

// The pack inside the library is sound, and has the source of every module that has kernels.
TEST(EmbeddedPack, IsWholeAndHasEverySource) {
  const KernelPack pack(kernels::embedded_pack(), "built in");
  const Content all = content_of(pack);  // throws when anything in it is damaged
  EXPECT_EQ(all.size(), pack.entries().size());
  const auto has_source = [&](const std::string& source) {
    for (const PackEntry& e : pack.entries()) {
      if (e.kind == PackKind::Source && e.name == source) return true;
    }
    return false;
  };
  for (int m = 0; m < kModuleCount; ++m) {
    const ModuleSpec& spec = module_spec(static_cast<ModuleId>(m));
    if (spec.kernels.empty()) continue;
    EXPECT_TRUE(has_source(std::string(spec.name) + ".cu")) << spec.name;
  }
  EXPECT_TRUE(has_source("gpu.h"));
}

// Asking for a module is enough to have its images: nothing else has to be called first.
TEST(EmbeddedPack, IsInstalledByWhoeverHasASpec) {
  static_cast<void>(module_spec(ModuleId::Fill));
  bool found = false;
  for (const RegisteredPack* registered : PackRegistry::global().packs()) {
    found |= registered->embedded && registered->pack.origin() == "built in";
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace tl
