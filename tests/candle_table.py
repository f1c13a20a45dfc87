#!/usr/bin/env python3
"""Makes a C++ file of the code in docs/candle.md, so that the page cannot name what does not exist.

    candle_table.py PAGE OUT     writes OUT, which compiles when every piece of code in the second column does

Fails when the part about tensor methods does not list each of candle's 217 methods once.
"""

import pathlib
import re
import sys

METHODS = 217

PRELUDE = """\
// Made from docs/candle.md. Compiled, never run.
#include <tl/tl.h>

namespace tl {
namespace {

[[maybe_unused]] void every_line_of_the_page(
    Tensor x, Tensor y, Tensor z, Tensor k, Tensor low, Tensor high, Tensor src, const Tensor& ids,
    const Tensor& mask, const std::vector<Tensor>& list, const NamedTensors& tensors,
    const Shape& shape, const Dims& dims, const Dims& counts, const Dims& before, const Dims& after,
    const Dims& kernel, const Dims& padding, const Dims& output_padding, const Dims& stride,
    const Dims& dilation, std::int64_t groups, std::int64_t dim, std::int64_t n, std::int64_t first,
    std::int64_t last, std::int64_t start, std::int64_t end, std::int64_t step, std::int64_t length,
    std::int64_t left, std::int64_t right, std::int64_t offset, std::int64_t size,
    std::int64_t height, std::int64_t width, std::int64_t decimals, double lo, double up,
    double alpha, double e, double p, Scalar v, Scalar w,
    DType dtype, const Device& device, const Stream& stream, const RawMemory& memory,
    const Layout& layout, const std::vector<float>& values,
    const std::vector<std::vector<float>>& rows, std::span<const Range> ranges,
    std::span<const std::byte> bytes, std::span<std::byte> host, const std::string& path,
    const std::string& name, const std::string& source, const std::string& function) {
"""
CLOSE = """\
}

}  // namespace
}  // namespace tl
"""


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def rows_of(text):
    """(heading of the second level, cells) for each row of each table."""
    heading = ""
    for line in text.splitlines():
        if line.startswith("## "):
            heading = line[3:]
        if line.startswith("| `"):
            yield heading, cells(line)


def main():
    page, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    names, body = [], []
    for heading, row in rows_of(page.read_text(encoding="utf-8")):
        if len(row) != 4:
            sys.exit(f"{page.name}: {row} has {len(row)} cells, not 4")
        if heading == "Tensor methods":
            names += re.findall(r"`([^`]+)`", row[0])
        codes = re.findall(r"`([^`]+)`", row[1])
        if not codes and row[1] != "—":
            sys.exit(f"{page.name}: {row[0]} has no code")
        # What the notes show as a call is code as well.
        codes += [code for code in re.findall(r"`([^`]+)`", row[2]) if re.fullmatch(r"[\w.]+\(.*\)", code)]
        body += [f"  static_cast<void>({code});" for code in codes]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or len(names) != METHODS:
        sys.exit(f"{page.name}: {len(names)} methods, {METHODS} wanted; twice: {twice}")
    used = set(re.findall(r"\w+", "\n".join(body)))
    parameters = re.search(r"every_line_of_the_page\((.*)\) \{", PRELUDE, re.S).group(1)
    body += [f"  static_cast<void>({name});" for name in re.findall(r"(\w+)(?:,|$)", parameters)
             if name not in used]
    out.write_text(PRELUDE + "\n".join(body) + "\n" + CLOSE, encoding="utf-8")


if __name__ == "__main__":
    main()
