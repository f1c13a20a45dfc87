// safetensors, npy and npz: round trips, files of others, and damaged files, which must end in a
// tl::Error and never in anything worse.
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "ops/conformance.h"
#include "tensor/npy_header.h"
#include "tensor/numpy_samples.h"
#include "tensor/zip.h"
#include "tl/ops/copy.h"
#include "tl/tensor/npy.h"
#include "tl/tensor/safetensors.h"

namespace tl {
namespace {

using namespace test;
namespace fs = std::filesystem;

using Bytes = std::vector<std::byte>;

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / join("tallow-files-", ::getpid())) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::size_t count() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
  }

 private:
  fs::path path_;
};

class Files : public OnEveryDevice {
 protected:
  Folder folder;
};
TL_ON_EVERY_DEVICE(Files);

Bytes read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

template <std::size_t kSize>
Bytes bytes_of(const unsigned char (&sample)[kSize]) {
  const auto bytes = std::as_bytes(std::span(sample));
  return {bytes.begin(), bytes.end()};
}

Bytes with_header(const std::string& header, std::size_t data, std::uint64_t length) {
  Bytes out(8 + header.size() + data);
  std::memcpy(out.data(), &length, 8);
  std::memcpy(out.data() + 8, header.data(), header.size());
  for (std::size_t i = 0; i < data; ++i) out[8 + header.size() + i] = static_cast<std::byte>(i);
  return out;
}
Bytes with_header(const std::string& header, std::size_t data) {
  return with_header(header, data, header.size());
}

// Opens and reads everything; anything but success and tl::Error fails the test.
template <class Reader>
bool survives(std::span<const std::byte> bytes) {
  // A copy of exactly that size, so that a sanitizer sees a read past its end.
  const auto exact = std::make_unique<std::byte[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), exact.get());
  try {
    const Reader reader = Reader::from_memory({exact.get(), bytes.size()});
    for (const std::string& name : reader.names()) {
      try {
        reader.load(name);
      } catch (const Error&) {
      }
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

struct NpyReader {
  static NpyReader from_memory(std::span<const std::byte> bytes) { return {bytes}; }
  std::vector<std::string> names() const { return {""}; }
  Tensor load(const std::string&) const { return parse_npy(bytes); }
  std::span<const std::byte> bytes;
};

// Every truncation, every byte flipped in several ways, and some random damage.
template <class Reader>
void damage(const Bytes& good, bool needs_the_end) {
  ASSERT_TRUE(survives<Reader>(good));
  for (std::size_t size = 0; size < good.size(); ++size) {
    const bool opened = survives<Reader>(std::span(good).first(size));
    if (needs_the_end) {
      EXPECT_FALSE(opened) << size;
    }
  }
  Bytes bad = good;
  for (std::size_t i = 0; i < bad.size(); ++i) {
    for (const unsigned value : {0u, 0xffu, 0x7fu, 0x80u, 0x01u}) {
      bad[i] = static_cast<std::byte>(value);
      survives<Reader>(bad);
      bad[i] = good[i] ^ static_cast<std::byte>(value);
      survives<Reader>(bad);
    }
    bad[i] = good[i];
  }
  std::mt19937_64 random(fuzz_seed());
  for (int round = 0; round < 3000; ++round) {
    bad = good;
    for (std::uint64_t edits = 1 + random() % 8; edits > 0; --edits) {
      bad[random() % bad.size()] = static_cast<std::byte>(random());
    }
    survives<Reader>(bad);
  }
}

NamedTensors samples(const Device& device) {
  NamedTensors out;
  for (const DType dtype : kDTypes) {
    const Host values = uniform_for(dtype, {3, 5}, 0, 100, 1);
    out.emplace(join("layer.", dtype), contiguous_on(values, dtype, device));
    out.emplace(join("view.", dtype), arrange(values, dtype, Arrangement::Transposed, device));
  }
  out.emplace("empty", Tensor::zeros({2, 0}, DType::F32, device));
  out.emplace("scalar", Tensor::from<double>({2.5}, {}, device));
  out.emplace("name with \"quotes\" and \xc3\xa9", Tensor::from<float>({1}, {1}, device));
  return out;
}

// ---- safetensors

TEST_P(Files, SafetensorsComeBackAsTheyWere) {
  const NamedTensors tensors = samples(device());
  const Metadata metadata{{"format", "pt"}, {"note", "line\nbreak"}};
  const std::string path = folder.file("a.safetensors");
  write_safetensors(path, tensors, metadata);
  EXPECT_EQ(folder.count(), 1u);
  const Safetensors file(path);
  EXPECT_EQ(file.metadata(), metadata);
  EXPECT_EQ(file.names().size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    ASSERT_TRUE(file.has(name));
    EXPECT_EQ(file.dtype(name), tensor.dtype());
    EXPECT_EQ(file.entry(name).shape, tensor.shape());
    const Tensor loaded = file.load(name, device());
    EXPECT_EQ(loaded.location(), device().location());
    expect_equal("safetensors", loaded, tensor, name);
  }
  EXPECT_EQ(file.load_all(device()).size(), tensors.size());
  expect_error(ErrorKind::BadArgument, "safetensors: there is no tensor 'nothing' in " + path,
               [&] { file.load("nothing"); });
}

TEST_P(Files, ATensorIsUploadedInOnePiece) {
  const std::string path = folder.file("a.safetensors");
  write_safetensors(path, {{"x", Tensor::zeros({1000}, DType::F32)}});
  const Safetensors file(path);
  const DriverCalls before = device().driver_calls();
  file.load("x", device());
  const DriverCalls after = device().driver_calls();
  EXPECT_EQ(after.uploads - before.uploads, 1u);
  EXPECT_EQ(after.launches, before.launches);
}

TEST_P(Files, WideElementsComeFirstAndTheHeaderIsPadded) {
  const std::string path = folder.file("a.safetensors");
  write_safetensors(path, {{"a", Tensor::from<std::uint8_t>({1, 2, 3}, {3})},
                           {"b", Tensor::from<double>({1}, {1})},
                           {"c", Tensor::from<float>({1}, {1})},
                           {"d", Tensor::from<float>({1}, {1})}});
  const Safetensors file(path);
  EXPECT_LT(file.entry("b").begin, file.entry("c").begin);
  EXPECT_LT(file.entry("c").begin, file.entry("d").begin);
  EXPECT_LT(file.entry("d").begin, file.entry("a").begin);
  EXPECT_EQ(file.entry("b").begin % 8, 0u);
  const Bytes bytes = read_file(path);
  const std::string header(reinterpret_cast<const char*>(bytes.data() + 8), 60);
  EXPECT_TRUE(header.starts_with(R"({"b":{"dtype":"F64","shape":[1],"data_offsets":[0,8]})"))
      << header;
  EXPECT_EQ(bytes.size(), file.entry("a").end);
}

TEST_P(Files, LaterFilesWin) {
  const std::string one = folder.file("1.safetensors"), two = folder.file("2.safetensors");
  write_safetensors(one,
                    {{"x", Tensor::from<float>({1}, {1})}, {"y", Tensor::from<float>({2}, {1})}},
                    {{"k", "1"}, {"l", "1"}});
  write_safetensors(two, {{"x", Tensor::from<float>({3}, {1})}}, {{"k", "2"}});
  const Safetensors both(std::vector<std::string>{one, two});
  EXPECT_EQ(both.load("x").item<float>(), 3);
  EXPECT_EQ(both.load("y").item<float>(), 2);
  EXPECT_EQ(both.entry("x").file, 1u);
  EXPECT_EQ(both.metadata(), (Metadata{{"k", "2"}, {"l", "1"}}));
}

TEST_P(Files, ForeignIntegersAreWidened) {
  const Bytes bytes = with_header(R"({"i8":{"dtype":"I8","shape":[2],"data_offsets":[0,2]},)"
                                  R"("u16":{"dtype":"U16","shape":[1],"data_offsets":[3,5]},)"
                                  R"("u64":{"dtype":"U64","shape":[1],"data_offsets":[5,13]}})",
                                  13);
  Bytes signs = bytes;
  signs[bytes.size() - 13] = std::byte{0xff};
  const Safetensors file = Safetensors::from_memory(signs);
  EXPECT_EQ(file.load("i8", device()).to_vector<std::int16_t>(),
            (std::vector<std::int16_t>{-1, 1}));
  EXPECT_EQ(file.load("u16", device()).item<std::uint32_t>(), 0x0403u);  // at an odd address
  EXPECT_EQ(file.load("u64", device()).item<std::int64_t>(), 0x0c0b0a0908070605);
  signs.back() = std::byte{0x80};
  expect_error(ErrorKind::Overflow, "memory: tensor 'u64': element 0 is 9",
               [&] { Safetensors::from_memory(signs).load("u64", device()); });
}

TEST(SafetensorsFiles, UnalignedElementsAreRead) {
  const Bytes bytes = with_header(
      R"({"pad":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"x":{"dtype":"F64","shape":[2],"data_offsets":[1,17]}})",
      17);
  const Tensor x = Safetensors::from_memory(bytes).load("x");
  double wanted[2];
  std::memcpy(wanted, bytes.data() + bytes.size() - 16, 16);
  EXPECT_EQ(std::memcmp(x.to_vector<double>().data(), wanted, 16), 0);
}

TEST(SafetensorsFiles, UnknownDtypesAndFieldsLeaveTheRestReadable) {
  const Bytes bytes = with_header(
      R"({"c":{"dtype":"C64","shape":[1],"data_offsets":[0,8],"extra":{"deep":[1,{"er":null}]}},)"
      R"("n":{"dtype":"Q99","shape":[3],"data_offsets":[8,9]},)"
      R"("f4":{"dtype":"F4","shape":[4],"data_offsets":[9,11]},)"
      R"("x":{"extra":1,"dtype":"U8","shape":[1],"data_offsets":[11,12]}})",
      12);
  const Safetensors file = Safetensors::from_memory(bytes);
  EXPECT_EQ(file.load("x").item<std::uint8_t>(), 11);
  for (const char* name : {"c", "n", "f4"}) {
    expect_error(ErrorKind::Unsupported, join("safetensors: tensor '", name, "' is of "),
                 [&] { file.load(name); });
  }
}

TEST(SafetensorsFiles, BytesThatAreNoBoolAreRefused) {
  const Bytes bytes = with_header(R"({"b":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})", 3);
  expect_error(ErrorKind::BadFile, "element 2 is the byte 2, which is no bool",
               [&] { Safetensors::from_memory(bytes).load("b"); });
}

TEST(SafetensorsFiles, LiesInTheHeaderAreFound) {
  const auto refused = [](const std::string& text, const Bytes& bytes) {
    expect_error(ErrorKind::BadFile, text, [&] { Safetensors::from_memory(bytes, "f"); });
  };
  const auto tensor = [](const std::string& dtype, const std::string& shape,
                         const std::string& offsets) {
    return R"({"x":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
           offsets + "}}";
  };
  refused("f: has 0 bytes, too few", {});
  refused("f: has 7 bytes", Bytes(7));
  refused("f: a header of 10 bytes does not fit in a file of 10", with_header("{}", 0, 10));
  refused("f: a header of 18446744073709551615 bytes is longer", with_header("{}", 0, ~0ull));
  refused("f: the header is no JSON at byte", with_header("", 0));
  refused("f: the header is no JSON at byte", with_header("{\"x\":", 0));
  refused("f: the header is no JSON at byte", with_header("{} {}", 0));
  refused("f: the header is no JSON at byte", with_header("{\"\xff\":{}}", 0));
  refused("f: the header is a list, not an object", with_header("[]", 0));
  refused("f: the header is a number", with_header("3", 0));
  refused("f: 'x' is null, not an object", with_header("{\"x\":null}", 0));
  refused("f: 'x' is a list, not an object", with_header("{\"x\":[]}", 0));
  refused("f: tensor 'x' has no 'dtype'", with_header("{\"x\":{}}", 0));
  refused("f: tensor 'x' has no 'shape'", with_header(R"({"x":{"dtype":"F32"}})", 0));
  refused("f: tensor 'x' has 'dtype' twice",
          with_header(R"({"x":{"dtype":"F32","dtype":"F32"}})", 0));
  refused("f: the name 'x' is there twice",
          with_header(R"({"x":{"dtype":"U8","shape":[],"data_offsets":[0,1]},"x":{}})", 1));
  refused("f: the metadata 'k' is a number, not a text",
          with_header(R"({"__metadata__":{"k":1}})", 0));
  refused("f: the metadata has 'k' twice", with_header(R"({"__metadata__":{"k":"","k":""}})", 0));
  refused("f: tensor 'x' lies at bytes 0 to 8 of 7", with_header(tensor("F64", "[1]", "[0,8]"), 7));
  refused("f: tensor 'x' lies at bytes 8 to 0 of 8", with_header(tensor("F64", "[1]", "[8,0]"), 8));
  refused("f: tensor 'x' of F32 and shape (1,) has 8 bytes",
          with_header(tensor("F32", "[1]", "[0,8]"), 8));
  refused("f: tensor 'x' of F4 and shape (3,) has 2 bytes",
          with_header(tensor("F4", "[3]", "[0,2]"), 2));
  refused("f: tensor 'x' of F32 and shape (4611686018427387904, 4) has 0 bytes",
          with_header(tensor("F32", "[4611686018427387904,4]", "[0,0]"), 0));
  refused("f: tensor 'x' has a size of 9223372036854775808",
          with_header(tensor("F32", "[9223372036854775808]", "[0,0]"), 0));
  refused("f: tensor 'x' has a negative number in 'shape'",
          with_header(tensor("F32", "[-1]", "[0,0]"), 0));
  refused("f: tensor 'x' has a number that is no integer in 'shape'",
          with_header(tensor("F32", "[1e3]", "[0,0]"), 0));
  refused("f: tensor 'x' has more than 8 dimensions",
          with_header(tensor("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), 1));
  refused("f: tensor 'x' has 1 data offsets", with_header(tensor("U8", "[1]", "[0]"), 1));
  refused("f: tensor 'x' has more than two data offsets",
          with_header(tensor("U8", "[1]", "[0,1,2]"), 1));
  refused("f: tensor 'x' has a list in 'shape'", with_header(tensor("U8", "[[1]]", "[0,1]"), 1));
  refused("f: tensors 'a' and 'b' share bytes",
          with_header(R"({"b":{"dtype":"U8","shape":[3],"data_offsets":[2,5]},)"
                      R"("a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})",
                      5));
  refused("nested deeper", with_header(R"({"x":{"y":)" + std::string(1'000'000, '['), 0));
  refused("f: tensor 'x' has a list in 'dtype'",
          with_header(R"({"x":{"dtype":)" + std::string(1'000'000, '['), 0));
  expect_error(ErrorKind::BadFile, "/nowhere/x", [] { Safetensors("/nowhere/x"); });
}

TEST(SafetensorsFiles, AHeaderOfNothingIsAFileOfNothing) {
  EXPECT_TRUE(Safetensors::from_memory(with_header("{}   ", 0)).names().empty());
  EXPECT_TRUE(Safetensors(std::vector<std::string>{}).names().empty());
}

TEST(SafetensorsFiles, NamesThatCannotBeWrittenAreRefused) {
  Folder folder;
  const std::string path = folder.file("x");
  expect_error(ErrorKind::BadArgument, "no tensor can be named __metadata__",
               [&] { write_safetensors(path, {{"__metadata__", Tensor()}}); });
  expect_error(ErrorKind::BadArgument, "not UTF-8",
               [&] { write_safetensors(path, {{"\xff", Tensor()}}); });
  expect_error(ErrorKind::BadFile, "/nowhere/x: cannot be created",
               [&] { write_safetensors("/nowhere/x", {}); });
  fs::create_directory(path);  // a folder cannot be replaced by a file
  expect_error(ErrorKind::BadFile, path, [&] { write_safetensors(path, {{"x", Tensor()}}); });
  EXPECT_EQ(folder.count(), 1u);  // and no half file is left
}

TEST(SafetensorsFiles, DamageIsSurvived) {
  Folder folder;
  const std::string path = folder.file("a");
  write_safetensors(
      path,
      {{"x", Tensor::from<float>({1, 2, 3, 4}, {2, 2})},
       {"b", Tensor::from_bytes(std::as_bytes(std::span("\1\0\1", 3)), DType::Bool, {3})}},
      {{"k", "v"}});
  damage<Safetensors>(read_file(path), true);
}

// ---- npy

TEST_P(Files, NpyComesBackAsItWas) {
  const std::string path = folder.file("a.npy");
  for (const auto& [name, tensor] : samples(device())) {
    if (tensor.dtype() == DType::BF16 || tensor.dtype() == DType::F8E4M3) {
      expect_error(ErrorKind::Unsupported, "npy: NumPy has no type for",
                   [&] { write_npy(path, tensor); });
      continue;
    }
    write_npy(path, tensor);
    expect_equal("npy", read_npy(path, device()), tensor, name);
    EXPECT_EQ((read_file(path).size() - tensor.size_bytes()) % 64, 0u);
  }
  EXPECT_EQ(folder.count(), 1u);
}

std::string npy(const std::string& header, std::size_t data, int version = 1) {
  std::string out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    out += static_cast<char>(header.size() >> (8 * i) & 0xff);
  }
  out += header;
  for (std::size_t i = 0; i < data; ++i) out += static_cast<char>(i);
  return out;
}

Tensor parse(const std::string& text, const Device& device = Device::cpu()) {
  return parse_npy(std::as_bytes(std::span(text)), device, "f");
}

TEST_P(Files, NpyOfEveryVersionAndByteOrderIsRead) {
  for (const int version : {1, 2, 3}) {
    const Tensor x =
        parse(npy("{'descr': '>u2', 'fortran_order': False, 'shape': (2,)}", 4, version), device());
    EXPECT_EQ(x.to_vector<std::uint32_t>(), (std::vector<std::uint32_t>{0x0001, 0x0203}));
  }
  EXPECT_EQ(
      parse(npy("{\"shape\": (1L, 2L), 'descr': '|i1', 'fortran_order': False, }\n", 2), device())
          .to_vector<std::int16_t>(),
      (std::vector<std::int16_t>{0, 1}));
  EXPECT_EQ(
      parse(npy("{'descr': '<u8', 'fortran_order': False, 'shape': ()}", 8), device()).shape(),
      Shape{});
  const Bytes fortran = bytes_of(kFortranNpy);
  const Tensor x = parse_npy(fortran, device());
  EXPECT_EQ(x.strides(), (Dims{1, 2}));
  EXPECT_EQ(x.to_vector<std::int32_t>(), (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5}));
}

TEST(NpyFiles, LiesAreFound) {
  const auto refused = [](ErrorKind kind, const std::string& text, const std::string& bytes) {
    expect_error(kind, text, [&] { parse(bytes); });
  };
  const auto header = [](const std::string& descr, const std::string& shape) {
    return npy("{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + "}", 8);
  };
  refused(ErrorKind::BadFile, "f: is no .npy file", "");
  refused(ErrorKind::BadFile, "f: is no .npy file", "PK");
  refused(ErrorKind::Unsupported, "f: is of version 4", npy("{}", 0, 4));
  refused(ErrorKind::BadFile, "f: a header of 65535 bytes does not fit",
          "\x93NUMPY\1" + std::string("\0\xff\xff", 3));
  refused(ErrorKind::BadFile, "f: a header of 4294967295 bytes",
          "\x93NUMPY\2" + std::string("\0\xff\xff\xff\xff", 5));
  refused(ErrorKind::BadFile, "lacks 'descr'", npy("{}", 0));
  refused(ErrorKind::BadFile, "has no '{'", npy("", 0));
  refused(ErrorKind::BadFile, "unknown key 'x'", npy("{'x': 1}", 0));
  refused(ErrorKind::BadFile, "has 'shape' twice", npy("{'shape': (), 'shape': ()}", 0));
  refused(ErrorKind::BadFile, "text without end", npy("{'descr", 0));
  refused(ErrorKind::BadFile, "goes on after its end",
          npy("{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", 8));
  refused(ErrorKind::BadFile, "f: has 8 bytes for shape (3,) of '<f4'", header("<f4", "(3,)"));
  refused(ErrorKind::Overflow, "f: shape", header("<f4", "(4611686018427387904, 4)"));
  refused(ErrorKind::BadFile, "no number of elements", header("<f4", "(-1,)"));
  refused(ErrorKind::BadFile, "no number of elements", header("<f4", "(99999999999999999999,)"));
  refused(ErrorKind::Unsupported, "more than 8 dimensions", header("<f4", "(1,1,1,1,1,1,1,1,1)"));
  refused(ErrorKind::Unsupported, "NumPy type '<c8'", header("<c8", "(1,)"));
  refused(ErrorKind::Unsupported, "NumPy type '|O'", header("|O", "(1,)"));
  refused(ErrorKind::Unsupported, "NumPy type ''", header("", "(1,)"));
  refused(ErrorKind::Unsupported, "structured arrays",
          npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", 8));
  expect_error(ErrorKind::BadFile, "/nowhere.npy", [] { read_npy("/nowhere.npy"); });
}

TEST(NpyFiles, DamageIsSurvived) { damage<NpyReader>(bytes_of(kFortranNpy), false); }

// ---- npz

TEST_P(Files, NpzComesBackAsItWas) {
  NamedTensors tensors;
  for (const auto& [name, tensor] : samples(device())) {
    if (tensor.dtype() != DType::BF16 && tensor.dtype() != DType::F8E4M3) {
      tensors.emplace(name, tensor);
    }
  }
  const std::string path = folder.file("a.npz");
  write_npz(path, tensors);
  const Npz file(path);
  EXPECT_EQ(file.names().size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    ASSERT_TRUE(file.has(name));
    expect_equal("npz", file.load(name, device()), tensor, name);
  }
  EXPECT_EQ(file.load_all(device()).size(), tensors.size());
  expect_error(ErrorKind::BadArgument, "npz: there is no array 'nothing' in " + path,
               [&] { file.load("nothing"); });
  expect_error(ErrorKind::Unsupported, "npy: NumPy has no type for bf16",
               [&] { write_npz(folder.file("b.npz"), {{"x", Tensor::zeros({1}, DType::BF16)}}); });
  EXPECT_EQ(folder.count(), 1u);
  write_npz(path, {});
  EXPECT_TRUE(Npz(path).names().empty());
}

TEST_P(Files, NpzOfNumPyIsRead) {
  const Bytes packed = bytes_of(kDeflatedNpz), stored = bytes_of(kStoredNpz);
  const Npz file = Npz::from_memory(packed);
  EXPECT_EQ(file.names(), (std::vector<std::string>{"flags", "many", "weights"}));
  EXPECT_EQ(file.load("weights", device()).to_vector<float>(),
            (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(file.load("weights").shape(), (Shape{2, 3}));
  EXPECT_EQ(file.load("flags", device()).dtype(), DType::Bool);
  EXPECT_EQ(file.load("flags").to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{1, 0, 1}));
  EXPECT_EQ(file.load("many", device()).to_vector<std::int64_t>(), std::vector<std::int64_t>(4000));
  const Npz other = Npz::from_memory(stored);
  EXPECT_EQ(other.load("x", device()).to_vector<std::int16_t>(),
            (std::vector<std::int16_t>{1, -2}));
  EXPECT_EQ(other.load("y", device()).item<double>(), 2.5);
}

TEST(NpzFiles, HeadersAreReadAlone) {
  Folder folder;
  const Bytes packed = bytes_of(kDeflatedNpz), stored = bytes_of(kStoredNpz);
  const NpyInfo many = Npz::from_memory(packed).info("many");
  EXPECT_EQ(many.stored, "<i8");
  EXPECT_EQ(many.shape, Shape{4000});
  EXPECT_EQ(many.bytes, 32000u);
  const NpyInfo x = Npz::from_memory(stored).info("x");
  EXPECT_EQ(x.stored, ">i2");
  EXPECT_EQ(x.bytes, 4u);
  expect_error(ErrorKind::BadArgument, "npz: there is no array 'z' in memory",
               [&] { Npz::from_memory(stored).info("z"); });

  write_npy(folder.file("a.npy"), Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3}));
  const NpyInfo a = npy_info(folder.file("a.npy"));
  EXPECT_EQ(a.shape, (Shape{2, 3}));
  EXPECT_EQ(a.stored, "<f4");
  EXPECT_FALSE(a.fortran);
  EXPECT_EQ(a.bytes, 24u);
  EXPECT_EQ(a.offset + 24, read_file(folder.file("a.npy")).size());
}

TEST(NpyFiles, TheHeaderOfElementsThatCannotBeReadIsThere) {
  const std::string text = npy("{'descr': '<c8', 'fortran_order': True, 'shape': (2,)}", 16);
  const files::NpyHeader header = files::read_npy_header("f", std::as_bytes(std::span(text)));
  EXPECT_EQ(header.descr, "<c8");
  EXPECT_TRUE(header.fortran);
  EXPECT_EQ(header.type, std::nullopt);
  const std::string large =
      npy("{'descr': '<f8', 'fortran_order': True, 'shape': (4611686018427387904,)}", 16);
  expect_error(ErrorKind::BadFile, "more bytes than there can be",
               [&] { files::read_npy_header("f", std::as_bytes(std::span(large))); });
}

TEST(NpzFiles, LargeSizesAndPlacesAreReadAndWritten) {
  Folder folder;
  const std::string path = folder.file("a.npz");
  const std::string text = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 8);
  for (const std::uint64_t large : {0, 1, 75, 100, 150, 1000}) {
    files::ZipWriter zip(path, large);  // as if 32 bits held less
    for (const char* name : {"a.npy", "b.npy", "c.npy"}) {
      zip.begin(name, text.size());
      zip.add(std::as_bytes(std::span(text)).first(5));
      zip.add(std::as_bytes(std::span(text)).subspan(5));
      zip.end();
    }
    zip.commit();
    const Npz file(path);
    EXPECT_EQ(file.names().size(), 3u);
    for (const auto& [name, x] : file.load_all()) EXPECT_EQ(x.shape(), (Shape{2})) << large;
  }
}

TEST(NpzFiles, AbsurdSizesAreNotAllocated) {
  Bytes bytes = bytes_of(kDeflatedNpz);
  // The unpacked size stands at byte 24 of each directory entry.
  const unsigned char signature[] = {'P', 'K', 1, 2};
  for (std::size_t i = 0; i + 46 < bytes.size(); ++i) {
    if (std::memcmp(bytes.data() + i, signature, 4) == 0) {
      const std::uint32_t size = 0xfffffff0;
      std::memcpy(bytes.data() + i + 24, &size, 4);
    }
  }
  const Npz file = Npz::from_memory(bytes, "f");
  for (const std::string& name : file.names()) {
    expect_error(ErrorKind::BadFile, "cannot unpack from", [&] { file.load(name); });
  }
}

TEST(NpzFiles, DamageIsFoundByTheChecksum) {
  Bytes bytes = bytes_of(kStoredNpz);
  const double value = 2.5;
  const auto needle = std::as_bytes(std::span(&value, 1));
  const auto at = std::search(bytes.begin(), bytes.end(), needle.begin(), needle.end());
  ASSERT_NE(at, bytes.end());
  *at ^= std::byte{1};
  expect_error(ErrorKind::BadFile, "f: member 'y.npy' is damaged: its checksum differs",
               [&] { Npz::from_memory(bytes, "f").load("y"); });
}

TEST(NpzFiles, DamageIsSurvived) {
  damage<Npz>(bytes_of(kStoredNpz), true);
  damage<Npz>(bytes_of(kDeflatedNpz), true);
  Folder folder;
  const std::string path = folder.file("a.npz");
  files::ZipWriter zip(path, 1);
  zip.begin("a.npy", 3);
  zip.add(std::as_bytes(std::span("abc", 3)));
  zip.end();
  zip.commit();
  damage<Npz>(read_file(path), true);
}

}  // namespace
}  // namespace tl
