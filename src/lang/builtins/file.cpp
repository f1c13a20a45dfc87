// Tensors and texts in files.
//
// A tensor by itself, in a file of no other known name:
//
//   rank     u32
//   sizes    u32 each
//   element  u32: bytes of an element, and in the upper half 0 for f16 and f32, else the dtype
//   data     row-major, little-endian
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <system_error>

#include "base/little_endian.h"
#include "lang/builtins/file.h"
#include "lang/builtins/library.h"
#include "lang/builtins/model_objects.h"
#include "lang/builtins/text.h"
#include "tensor/atomic_file.h"
#include "tl/base/mapped_file.h"
#include "tl/ops/copy.h"
#include "tl/tensor/npy.h"
#include "tl/tensor/safetensors.h"

namespace tl::lang {

namespace {

namespace fs = std::filesystem;

// ---- the language's own format

// The numbers of dtypes in files; never changed.
constexpr std::array<std::pair<DType, std::uint32_t>, 9> kCodes = {{{DType::U8, 1},
                                                                    {DType::U32, 2},
                                                                    {DType::I16, 3},
                                                                    {DType::I32, 4},
                                                                    {DType::I64, 5},
                                                                    {DType::F8E4M3, 6},
                                                                    {DType::BF16, 7},
                                                                    {DType::F64, 8},
                                                                    {DType::Bool, 9}}};

std::uint32_t element_word(DType dtype) {
  auto word = static_cast<std::uint32_t>(size_of(dtype));
  for (const auto& [known, code] : kCodes) {
    if (known == dtype) word |= code << 16;
  }
  return word;
}

DType element_type(const std::string& path, std::uint32_t word) {
  const std::uint32_t size = word & 0xFFFF;
  if (word >> 16 == 0 && size == 2) return DType::F16;
  if (word >> 16 == 0 && size == 4) return DType::F32;
  for (const auto& [dtype, code] : kCodes) {
    if (word >> 16 == code && size == size_of(dtype)) return dtype;
  }
  throw Error(ErrorKind::BadFile, path, "is no saved tensor: an element of ", size,
              " bytes and code ", word >> 16);
}

void write_own(const std::string& path, const tl::Tensor& tensor) {
  std::vector<std::uint32_t> header{static_cast<std::uint32_t>(tensor.rank())};
  for (const std::int64_t size : tensor.shape()) {
    if (size > UINT32_MAX) {
      throw Error(ErrorKind::Overflow, path, "a size of ", size, " does not fit in the format");
    }
    header.push_back(static_cast<std::uint32_t>(size));
  }
  header.push_back(element_word(tensor.dtype()));
  std::vector<std::byte> data(tensor.size_bytes());
  tensor.read_bytes(data);
  files::AtomicFile file(path);
  file.write(std::as_bytes(std::span(header)));
  file.write(std::span<const std::byte>(data));
  file.close();
  file.commit();
}

tl::Tensor read_own(const std::string& path, const Device& device) {
  const MappedFile file(path);
  std::span<const std::byte> rest = file.bytes();
  const auto next = [&](std::string_view field) {
    if (rest.size() < 4) {
      throw Error(ErrorKind::BadFile, path, "is no saved tensor: it ends at byte ",
                  file.bytes().size() - rest.size(), ", in its ", field);
    }
    const auto number = files::load_number<std::uint32_t>(rest.data());
    rest = rest.subspan(4);
    return number;
  };
  const std::uint32_t rank = next("rank");
  if (rank > Dims::kMax) {
    throw Error(ErrorKind::BadFile, path, "is no saved tensor: its rank would be ", rank);
  }
  Shape shape;
  for (std::uint32_t d = 0; d < rank; ++d) shape.push_back(next("sizes"));
  const DType dtype = element_type(path, next("element size"));
  const std::uint64_t bytes = checked_multiply(
      path, static_cast<std::uint64_t>(element_count(path, shape)), size_of(dtype));
  if (bytes != rest.size()) {
    throw Error(ErrorKind::BadFile, path, "a tensor of shape ", shape, " has ", bytes,
                " bytes, and there are ", rest.size());
  }
  return tl::Tensor::from_bytes(rest, dtype, shape, device);
}

// ---- tensors, by the extension of the file

tl::Tensor read_safetensors(const std::string& path, const Args& args, const Device& device) {
  const Safetensors file(path);
  if (args.has(1)) {
    const std::string& name = args.string(1);
    if (!file.has(name)) {
      throw invalid_operation("Tensor '", name, "' not found in ", path,
                              did_you_mean(name, file.names()));
    }
    return file.load(name, device);
  }
  const std::vector<std::string> names = file.names();
  if (names.size() != 1) {
    throw invalid_operation(path, " has ", names.size(),
                            " tensors; give the name of one, or use load_tensors()");
  }
  return file.load(names.front(), device);
}

tl::Tensor load_any(const Context& context, const Args& args) {
  const std::string& path = args.string(0);
  expect_file(path);
  if (path.ends_with(".npy")) return read_npy(path, context.device);
  if (path.ends_with(".safetensors")) return read_safetensors(path, args, context.device);
  return read_own(path, context.device);
}

Value call_save_tensors(Context& context, Args& args);

Value call_save(Context& context, Args& args) {
  if (args[0].is(Kind::Map)) {
    if (args.has(2)) args.bad(2, "no name for tensors that have names");
    return call_save_tensors(context, args);
  }
  const tl::Tensor tensor = args.tensor(context, 0);
  const std::string& path = args.string(1);
  if (path.ends_with(".npy")) {
    write_npy(path, tensor);
  } else if (path.ends_with(".safetensors")) {
    write_safetensors(path, {{args.has(2) ? args.string(2) : "tensor", tensor}});
  } else {
    write_own(path, tensor);
  }
  if (context.verbose) *context.out << "Saved tensor to: " << path << '\n';
  return {};
}

Value loaded(const Context& context, const Args& args, std::optional<DType> dtype) {
  tl::Tensor tensor = load_any(context, args);
  if (dtype) tensor = to_dtype(tensor, *dtype);
  if (context.verbose) {
    *context.out << "Loaded tensor from: " << args.string(0)
                 << " (shape: " << bracketed(tensor.shape()) << ")\n";
  }
  return tensor;
}

Value call_load(Context& context, Args& args) { return loaded(context, args, std::nullopt); }
Value call_load_f16(Context& context, Args& args) { return loaded(context, args, DType::F16); }
Value call_load_f32(Context& context, Args& args) { return loaded(context, args, DType::F32); }

Value call_save_tensors(Context& context, Args& args) {
  if (!args[0].is(Kind::Map)) args.bad(0, "a map of tensors");
  NamedTensors tensors;
  for (const auto& [key, value] : args[0].as<MapObject>().entries) {
    tensors.emplace(text(key), to_tensor(context, args.name(), value));
  }
  const std::string& path = args.string(1);
  if (path.ends_with(".npz")) {
    write_npz(path, tensors);
  } else {
    write_safetensors(path, tensors);
  }
  if (context.verbose) {
    *context.out << "Saved " << tensors.size() << " tensors to: " << path << '\n';
  }
  return {};
}

Value call_load_tensors(Context& context, Args& args) {
  const std::string& path = args.string(0);
  expect_file(path);
  const NamedTensors tensors = path.ends_with(".npz") ? Npz(path).load_all(context.device)
                                                      : Safetensors(path).load_all(context.device);
  const Value out = make<MapObject>();
  auto& map = static_cast<MapObject&>(*out.object());
  for (const auto& [name, tensor] : tensors) map.slot(Value(name)) = tensor;
  return out;
}

// ---- texts

[[noreturn]] void io_error(const std::string& path, const char* what) {
  throw RuntimeError(tl::join("IO error: ", path, " ", what, ": ", std::strerror(errno)));
}

std::string read_all(const std::string& path) {
  expect_file(path);
  errno = 0;
  std::error_code failed;
  if (fs::is_directory(path, failed)) {
    throw RuntimeError(tl::join("IO error: ", path, " is a folder"));
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) io_error(path, "cannot be read");
  std::string out{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (in.bad()) io_error(path, "cannot be read");
  return out;
}

void write_all(const std::string& path, const std::string& text, std::ios::openmode mode) {
  errno = 0;
  std::ofstream out(path, std::ios::binary | mode);
  if (out) out << text << std::flush;
  if (!out) io_error(path, "cannot be written");
}

Value call_read_text(Context&, Args& args) { return read_all(args.string(0)); }
Value call_read_lines(Context&, Args& args) {
  return list_of_texts(split_lines(read_all(args.string(0))));
}
Value call_write_text(Context&, Args& args) {
  write_all(args.string(0), text(args[1]), std::ios::trunc);
  return {};
}
Value call_append_text(Context&, Args& args) {
  write_all(args.string(0), text(args[1]), std::ios::app);
  return {};
}

Value call_file_exists(Context&, Args& args) {
  std::error_code ignored;
  return fs::exists(args.string(0), ignored);
}

[[noreturn]] void io_error(const std::string& path, const char* what, const std::error_code& why) {
  throw RuntimeError(tl::join("IO error: ", path, " ", what, ": ", why.message()));
}

Value call_remove_file(Context&, Args& args) {
  const std::string& path = args.string(0);
  std::error_code failed;
  const bool removed = fs::remove(path, failed);
  if (failed) io_error(path, "cannot be removed", failed);
  if (!removed) throw RuntimeError("File not found: " + path);
  return {};
}

Value call_make_dir(Context&, Args& args) {
  const std::string& path = args.string(0);
  std::error_code failed;
  fs::create_directories(path, failed);
  if (failed) io_error(path, "cannot be made", failed);
  return {};
}

Value call_list_dir(Context&, Args& args) {
  const std::string& path = args.string(0);
  expect_file(path);
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator entry(path, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    names.push_back(entry->path().filename().string());
  }
  if (failed) io_error(path, "cannot be listed", failed);
  std::sort(names.begin(), names.end());
  return list_of_texts(names);
}

// ---- tables

// Fields of the lines; those in quotes may hold separators, lines and doubled quotes.
std::vector<std::vector<std::string>> read_table(const std::string& path, std::string_view text,
                                                 char separator) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> row;
  std::string field;
  bool in_quotes = false, has_field = false;
  const auto end_field = [&] {
    row.push_back(std::move(field));
    field.clear();
    has_field = false;
  };
  const auto end_row = [&] {
    if (row.empty() && !has_field && field.empty()) return;  // an empty line
    end_field();
    rows.push_back(std::move(row));
    row.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_quotes) {
      if (c != '"') {
        field += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        field += '"';
        ++i;
      } else {
        in_quotes = false;
      }
    } else if (c == '"' && field.empty()) {
      in_quotes = has_field = true;
    } else if (c == separator) {
      end_field();
      has_field = true;
    } else if (c == '\n') {
      end_row();
    } else if (c != '\r') {
      field += c;
    }
  }
  if (in_quotes) throw RuntimeError(tl::join("Parse error: ", path, ": a quote has no end"));
  end_row();
  return rows;
}

std::optional<double> number_in(std::string_view field) {
  const std::size_t first = field.find_first_not_of(" \t");
  if (first == std::string_view::npos) return std::nullopt;
  field = field.substr(first, field.find_last_not_of(" \t") - first + 1);
  if (field.starts_with('+')) field.remove_prefix(1);
  double number = 0;
  const auto [end, status] = std::from_chars(field.data(), field.data() + field.size(), number);
  if (status != std::errc{} || end != field.data() + field.size()) return std::nullopt;
  return number;
}

Value as_lists(const std::vector<std::vector<std::string>>& rows) {
  std::vector<Value> out;
  for (const auto& row : rows) {
    std::vector<Value> fields;
    for (const std::string& field : row) {
      const std::optional<double> number = number_in(field);
      fields.push_back(number ? Value(*number) : Value(field));
    }
    out.push_back(list_of(std::move(fields)));
  }
  return list_of(std::move(out));
}

Value call_read_csv(Context& context, Args& args) {
  const std::string& path = args.string(0);
  const std::string& separator = args.string(1);
  if (separator.size() != 1) args.bad_value(1, "one character that separates");
  auto rows = read_table(path, read_all(path), separator.front());
  if (args.boolean(2) && !rows.empty()) rows.erase(rows.begin());
  std::vector<float> numbers;
  for (const auto& row : rows) {
    if (row.size() != rows.front().size()) return as_lists(rows);
    for (const std::string& field : row) {
      const std::optional<double> number = number_in(field);
      if (!number) return as_lists(rows);
      numbers.push_back(static_cast<float>(*number));
    }
  }
  const auto count = static_cast<std::int64_t>(rows.size());
  const auto columns = static_cast<std::int64_t>(rows.empty() ? 0 : rows.front().size());
  return tl::Tensor::from(numbers, {count, columns}, context.device);
}

}  // namespace

BuiltinRows file_builtins() {
  static const std::vector<Builtin> rows = [] {
    const Builtin own[] = {
        {"save", "files", "(tensor, path, name = none)",
         "Writes a tensor: .npy, .safetensors under a name, or the language's own format; a map of "
         "tensors as save_tensors() does.",
         call_save},
        {"load", "files", "(path, name = none)", "The tensor that save() wrote.", call_load},
        {"load_f16", "files", "(path, name = none)", "The tensor of a file as f16.", call_load_f16},
        {"load_f32", "files", "(path, name = none)", "The tensor of a file as f32.", call_load_f32},
        {"save_tensors", "files", "(tensors, path)",
         "Writes a map of tensors into one .safetensors or .npz file.", call_save_tensors},
        {"load_tensors", "files", "(path)",
         "All tensors of a .safetensors or .npz file as a map by name.", call_load_tensors},
        {"read_text", "files", "(path)", "The text of a file.", call_read_text},
        {"read_lines", "files", "(path)", "The lines of a file, without their ends.",
         call_read_lines},
        {"write_text", "files", "(path, text)", "Writes a text as the whole of a file.",
         call_write_text},
        {"append_text", "files", "(path, text)", "Adds a text at the end of a file.",
         call_append_text},
        {"read_csv", "files", "(path, separator = \",\", header = false)",
         "A table: a tensor where all fields are numbers, else a list of lists; `header` leaves "
         "the first line out.",
         call_read_csv},
        {"file_exists", "files", "(path)", "Whether there is a file or folder of that name.",
         call_file_exists},
        {"list_dir", "files", "(path)", "The names in a folder, sorted.", call_list_dir},
        {"make_dir", "files", "(path)",
         "Makes a folder, and those it lies in; one that is there already stays as it is.",
         call_make_dir},
        {"remove_file", "files", "(path)", "Removes a file, or a folder with nothing in it.",
         call_remove_file},
    };
    return joined({own, json_builtins()});
  }();
  return rows;
}

}  // namespace tl::lang
