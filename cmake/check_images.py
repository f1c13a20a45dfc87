"""Checks the GPU images of a build: every kernel is in every image, and none uses scratch memory.

A kernel that spills registers, or keeps an array where it cannot be indexed at compile time, puts
it in memory that is a hundred times slower. That is never meant here, and no test of results shows
it, so it is read out of the images: from the metadata of AMD's, and for NVIDIA's from what ptxas
said when it made them.

Exit status 77, which ctest takes for "skipped", when no image was to be built.
"""

import argparse
import pathlib
import re
import struct
import sys


def kernels_of(source):
    return re.findall(r"^GPU_KERNEL void ([a-z0-9_]+)\(", source.read_text(), re.M)


class Elf:
    """The sections of a 64-bit little-endian ELF file."""

    def __init__(self, data):
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("not a 64-bit little-endian ELF file")
        (offset,) = struct.unpack_from("<Q", data, 0x28)
        size, count, names = struct.unpack_from("<HHH", data, 0x3A)
        self.data = data
        self.sections = []
        for i in range(count):
            header = struct.unpack_from("<IIQQQQIIQQ", data, offset + i * size)
            self.sections.append(header)
        self.names = self.content(self.sections[names])

    def content(self, section):
        return self.data[section[4]:section[4] + section[5]]

    def of_type(self, kind):
        return [s for s in self.sections if s[1] == kind]

    def functions(self):
        found = set()
        for table in self.of_type(2) + self.of_type(11):  # SYMTAB, DYNSYM
            names = self.content(self.sections[table[6]])
            body = self.content(table)
            for at in range(0, len(body), 24):
                name, info, _, section = struct.unpack_from("<IBBH", body, at)
                if info & 15 == 2 and section != 0:  # a function defined here
                    found.add(names[name:names.index(b"\0", name)].decode())
        return found

    def notes(self):
        for section in self.of_type(7):
            body = self.content(section)
            at = 0
            while at + 12 <= len(body):
                name_size, size, kind = struct.unpack_from("<III", body, at)
                at += 12
                name = body[at:at + name_size].rstrip(b"\0")
                at += (name_size + 3) & ~3
                yield name, kind, body[at:at + size]
                at += (size + 3) & ~3


def message_pack(data, at=0):
    """One MessagePack value and the place behind it; the types that code objects use."""
    code = data[at]
    at += 1

    def sized(form):
        return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)

    def text(size, at):
        return data[at:at + size].decode(), at + size

    def array(count, at):
        out = []
        for _ in range(count):
            value, at = message_pack(data, at)
            out.append(value)
        return out, at

    def mapping(count, at):
        flat, at = array(2 * count, at)
        return dict(zip(flat[::2], flat[1::2])), at

    if code < 0x80:
        return code, at
    if code < 0x90:
        return mapping(code & 15, at)
    if code < 0xA0:
        return array(code & 15, at)
    if code < 0xC0:
        return text(code & 31, at)
    if code in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[code], at
    numbers = {0xCC: "B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
               0xD0: "b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
    if code in numbers:
        return sized(numbers[code])
    for codes, read in (((0xD9, 0xDA, 0xDB), text), ((None, 0xDC, 0xDD), array),
                        ((None, 0xDE, 0xDF), mapping)):
        if code in codes:
            return read(*sized(("B", ">H", ">I")[codes.index(code)]))
    if code >= 0xE0:
        return code - 256, at
    raise ValueError(f"unknown MessagePack code {code:#x}")


def check_amd(path):
    """What is wrong with an AMD image, and the kernels in it."""
    elf = Elf(path.read_bytes())
    problems, found = [], set()
    for name, kind, body in elf.notes():
        if (name, kind) != (b"AMDGPU", 32):
            continue
        for kernel in message_pack(body)[0]["amdhsa.kernels"]:
            found.add(kernel[".name"])
            for key in (".private_segment_fixed_size", ".vgpr_spill_count"):
                # Very old code objects have no counts of spills; scratch shows them too. Scalar
                # registers spill to lanes of vector registers: without scratch that is no memory.
                if kernel.get(key, 0) != 0:
                    problems.append(f"{kernel['.name']}: {key[1:]} is {kernel[key]}")
            if kernel.get(".uses_dynamic_stack"):
                problems.append(f"{kernel['.name']}: uses a dynamic stack")
    return problems, found & elf.functions()


def check_cubin(path):
    log = path.with_name(path.name + ".log").read_text()
    problems = []
    properties = re.findall(
        r"Function properties for (\S+)\n\s*(\d+) bytes stack frame, (\d+) bytes spill stores, "
        r"(\d+) bytes spill loads", log)
    found = Elf(path.read_bytes()).functions()
    for name, stack, stores, loads in properties:
        if (stack, stores, loads) != ("0", "0", "0"):
            problems.append(f"{name}: {stack} bytes of stack, {stores} of spill stores, "
                            f"{loads} of spill loads")
    # Divisions are subroutines of ptxas's own; they have no frame that it would speak of.
    silent = {f for f in found if not f.startswith("$__internal_")} - {p[0] for p in properties}
    if silent:
        problems.append(f"ptxas said nothing of {', '.join(sorted(silent))}")
    return problems, found


def check_ptx(path):
    return [], set(re.findall(r"^\.visible \.entry (\w+)\(", path.read_text(), re.M))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sources", type=pathlib.Path, required=True)
    parser.add_argument("--images", type=pathlib.Path, required=True)
    parser.add_argument("--modules", nargs="+", required=True)
    parser.add_argument("--nvidia", nargs="*", default=[])
    parser.add_argument("--amd", nargs="*", default=[])
    options = parser.parse_args()

    for vendor, targets in (("NVIDIA", options.nvidia), ("AMD", options.amd)):
        if not targets:
            print(f"no {vendor} images were built (no compiler), so none is checked")
    bad = checked = 0
    for module in options.modules:
        kernels = kernels_of(options.sources / f"{module}.cu")
        if not kernels:
            print(f"{module}.cu has no kernel")
            bad += 1
        for target in options.nvidia + options.amd:
            if target.startswith("gfx"):
                ending, check = "hsaco", check_amd
            elif target.startswith("compute_"):
                ending, check = "ptx", check_ptx
            else:
                ending, check = "cubin", check_cubin
            path = options.images / f"{module}.{target}.{ending}"
            try:
                problems, found = check(path)
            except (OSError, ValueError, KeyError, IndexError, struct.error) as error:
                problems, found = [f"cannot be read: {error}"], set(kernels)
            missing = [k for k in kernels if k not in found]
            if missing:
                problems.append(f"has no kernel {', '.join(missing)}")
            for problem in problems:
                print(f"{path.name}: {problem}")
            bad += len(problems)
            checked += 1
    if checked == 0 and bad == 0:
        return 77
    print(f"{checked} images of {len(options.modules)} modules, {bad} problems")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
