"""Checks the GPU images of a build: every kernel is in every image, none uses scratch memory, and
on NVIDIA's since sm_90 each begins by waiting for the kernels before it.

A kernel that spills registers, or keeps an array where it cannot be indexed at compile time, puts
it in memory that is a hundred times slower. That is never meant here, and no test of results shows
it, so it is read out of the images: from the metadata of AMD's, and for NVIDIA's from what ptxas
said when it made them.

A kernel launched by tl::launch() may begin before the kernel ahead of it has ended, because it waits
for that itself (await_earlier() in gpu.h). One that forgot to, or read memory first, would be wrong
now and then and on fast devices only. So that is read out of the images too: of machine code
instruction by instruction, which takes no disassembler, since each is 16 bytes and begins with its
number.

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

    def code_of(self, function):
        """The bytes of an NVIDIA kernel, which has a section of its own; None where it has none."""
        name = b".text." + function.encode() + b"\0"
        for section in self.sections:
            if self.names.startswith(name, section[0]):
                return self.content(section)
        return None

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


def check_amd(path, _target):
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


# Instructions of NVIDIA's by the low twelve bits: the lower nine say what is done, the others where
# operands are. griddepcontrol.wait is ACQBULK.
WAIT = 0x82E
ALWAYS = 7  # the predicate, in the four bits above
# What may stand before it: no access to memory but that of the kernel's parameters, and no branch.
# Calls for lines of memory are none: they come to the cache where later writes are seen.
# Another one here is not wrong by itself; look it up, and add it when it is one of these.
HARMLESS = {
    0x002: "MOV", 0x005: "CS2R", 0x007: "SEL", 0x00C: "ISETP", 0x010: "IADD3", 0x011: "LEA",
    0x012: "LOP3", 0x013: "IABS", 0x016: "PRMT", 0x017: "IMNMX", 0x019: "SHF", 0x01C: "PLOP3", 0x024: "IMAD", 0x025: "IMAD.WIDE",
    0x027: "IMAD.HI", 0x02D: "PREEXIT", 0x031: "HFMA2", 0x035: "HFMA2.MMA", 0x036: "VIADD",
    0x04A: "of integers, since sm_100", 0x097: "of integers, uniform, since sm_100",
    0x082: "UMOV", 0x087: "USEL", 0x08C: "UISETP", 0x090: "UIADD3", 0x091: "ULEA", 0x092: "ULOP3",
    0x096: "UPRMT", 0x099: "USHF", 0x09C: "UPLOP3", 0x0A4: "UIMAD", 0x0A5: "UIMAD.WIDE",
    0x0B9: "ULDC", 0x105: "F2I", 0x106: "I2F", 0x108: "MUFU", 0x112: "I2F.F64", 0x118: "NOP",
    0x119: "S2R", 0x145: "BSSY", 0x182: "LDC", 0x18F: "CCTL", 0x1AC: "LDCU", 0x1C3: "S2UR",
}


def begins_without_waiting(code):
    """What is wrong with the start of a kernel's machine code; None when it is right.

    >>> def code(*words): return b"".join(struct.pack("<H14x", word) for word in words)
    >>> begins_without_waiting(code(0x7919, 0x782E, 0x7981))
    >>> begins_without_waiting(code(0x7919, 0x7981, 0x782E))
    'instruction 0x981 stands before await_earlier(), or there is none'
    >>> begins_without_waiting(code(0x7919, 0x082E, 0x7981))
    'await_earlier() is in a branch'
    >>> begins_without_waiting(code(0x7919, 0x794D))
    'instruction 0x94d stands before await_earlier(), or there is none'
    """
    for at in range(0, len(code), 16):
        (word,) = struct.unpack_from("<H", code, at)
        instruction, predicate = word & 0xFFF, word >> 12
        if instruction == WAIT:
            return None if predicate == ALWAYS else "await_earlier() is in a branch"
        if instruction & 0x1FF not in HARMLESS:
            return f"instruction {instruction:#05x} stands before await_earlier(), or there is none"
    return "has no await_earlier()"


# The same of PTX, where more is computed ahead because nothing is in its final order yet.
HARMLESS_PTX = re.compile(
    r"(abs|add|and|bfe|cvt|cvta|div|griddepcontrol\.launch_dependents|ld\.param|mad|max|min|mov|mul|neg|not|or|"
    r"prefetch\.global\.L2|prmt|rem|selp|setp|shl|shr|sub|xor)"
    r"[. ;]|//|\.(reg|shared|loc|pragma)\b|[{}]|$")


def entry_without_waiting(text):
    """What is wrong with the start of a kernel's PTX, from its parameters on; None when it is right.

    >>> entry_without_waiting("(.param .u64 a) {\\n ld.param.u64 %a, [a];\\n griddepcontrol.wait;\\n ret;")
    >>> entry_without_waiting("() {\\n ld.global.u32 %a, [%b];\\n griddepcontrol.wait;\\n")
    "'ld.global.u32 %a, [%b];' stands before await_earlier(), or there is none"
    >>> entry_without_waiting("() {\\n @%p1 bra $L;\\n griddepcontrol.wait;\\n")
    "'@%p1 bra $L;' stands before await_earlier(), or there is none"
    """
    for line in text.partition("{")[2].splitlines():
        line = line.strip()
        if line == "griddepcontrol.wait;":
            return None
        if not HARMLESS_PTX.match(line):
            return f"'{line}' stands before await_earlier(), or there is none"
    return "has no await_earlier()"


def waits(target):
    return int(re.search(r"_(\d+)", target).group(1)) >= 90


def check_cubin(path, target):
    log = path.with_name(path.name + ".log").read_text()
    problems = []
    properties = re.findall(
        r"Function properties for (\S+)\n\s*(\d+) bytes stack frame, (\d+) bytes spill stores, "
        r"(\d+) bytes spill loads", log)
    elf = Elf(path.read_bytes())
    found = elf.functions()
    for name, stack, stores, loads in properties:
        if (stack, stores, loads) != ("0", "0", "0"):
            problems.append(f"{name}: {stack} bytes of stack, {stores} of spill stores, "
                            f"{loads} of spill loads")
    # Divisions are subroutines of ptxas's own; they have no frame that it would speak of.
    silent = {f for f in found if not f.startswith("$__internal_")} - {p[0] for p in properties}
    if silent:
        problems.append(f"ptxas said nothing of {', '.join(sorted(silent))}")
    if waits(target):
        for name, _, _, _ in properties:
            code = elf.code_of(name)
            problem = "has no code" if code is None else begins_without_waiting(code)
            if problem:
                problems.append(f"{name}: {problem}")
    return problems, found


def check_ptx(path, target):
    # What stands between two names is the first one's.
    parts = re.split(r"^\.visible \.entry (\w+)", path.read_text(), flags=re.M)
    problems = []
    for name, text in zip(parts[1::2], parts[2::2]):
        if waits(target):
            problem = entry_without_waiting(text)
        else:
            problem = "has griddepcontrol" if "griddepcontrol" in text else None
        if problem:
            problems.append(f"{name}: {problem}")
    return problems, set(parts[1::2])


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
                problems, found = check(path, target)
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
