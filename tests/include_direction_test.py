#!/usr/bin/env python3
"""Checks that rooms only include rooms to their left, and that vendors' names stay where they belong.

    include_direction_test.py ROOT          checks ROOT/src and ROOT/include/tl
    include_direction_test.py --self-test   checks the checker against small made-up trees

The order is base -> runtime -> kernels -> tensor -> ops -> quant -> grad -> model -> logic -> lang -> cli. A file may
include its own room and rooms to its left. capi, the C interface, stands beside cli. CUDA's and HIP's own names are known to src/runtime/driver/ and to
src/kernels/gpu*.h alone; everything else is written once for both.
"""

import pathlib
import re
import sys
import tempfile

RANKS = [["base"], ["runtime"], ["kernels"], ["tensor"], ["ops"], ["quant"], ["grad"], ["model"], ["logic"],
         ["lang"], ["capi", "cli"]]
RANK = {room: rank for rank, rooms in enumerate(RANKS) for room in rooms}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
VENDOR_HEADER = re.compile(r"^(cuda|cublas|cudnn|curand|nvrtc|nvml|nvtx|hip|rocm|rocblas|miopen|hsa)\w*([./]|$)", re.I)
VENDOR_NAME = re.compile(r"\b(cu[A-Z]\w*|hip[A-Z]\w*|nvrtc\w*|hiprtc\w*)\b")

# Comments, and string and character literals (raw strings first), in one pass so that a quote inside a comment or a
# comment inside a string means nothing. A digit's separator (1'000) must not be taken for a character.
NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^()\\ ]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL)


def room_of(path):
    """The room of a file given by its path under the root, or None for one that stands above the rooms (tl/tl.h)."""
    parts = path.parts
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    if parts[:2] == ("include", "tl") and len(parts) > 3:
        return parts[2]
    return None


def room_included(target):
    """The room that an include line names, or None when it is not one of ours."""
    parts = target.split("/")
    if parts[0] == "tl":
        parts = parts[1:]
    return parts[0] if len(parts) > 1 and parts[0] in RANK else None


def may_know_vendors(path):
    text = path.as_posix()
    return text.startswith("src/runtime/driver/") or re.fullmatch(r"src/kernels/gpu\w*\.h", text) is not None


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())  # lines keep their numbers


def check_file(root, path):
    text = (root / path).read_text(encoding="utf-8")
    room = room_of(path)
    # Comments only: an include line's target is itself a string.
    uncommented = NOT_CODE.sub(lambda m: blank(m) if m.group().startswith("/") else m.group(), text)
    for match in INCLUDE.finditer(uncommented):
        line = text.count("\n", 0, match.start()) + 1
        target = match.group(2)
        included = room_included(target)
        if ".." in target.split("/"):
            yield f"{path}:{line}: '{target}' climbs out of its folder; name the room instead"
        elif room is not None and included is not None and included != room and RANK[included] >= RANK[room]:
            yield f"{path}:{line}: {room} -> {included} ('{target}') points the wrong way"
        if VENDOR_HEADER.match(target) and not may_know_vendors(path):
            yield f"{path}:{line}: a vendor's header, '{target}', outside runtime/driver and kernels/gpu*.h"
    if may_know_vendors(path):
        return
    code = NOT_CODE.sub(blank, text)
    for match in VENDOR_NAME.finditer(code):
        line = code.count("\n", 0, match.start()) + 1
        yield f"{path}:{line}: a vendor's name, {match.group()}, outside runtime/driver and kernels/gpu*.h"


def check_tree(root):
    """(problems, how many files were read)"""
    problems = []
    count = 0
    for top in ("src", "include/tl"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in (".h", ".cpp", ".cu"):
                continue
            path = file.relative_to(root)
            count += 1
            room = room_of(path)
            if room is not None and room not in RANK:
                problems.append(f"{path}: '{room}' is not a room; the rooms are {', '.join(RANK)}")
                continue
            problems.extend(check_file(root, path))
    return problems, count


# Each made-up tree: its files, and a piece of every problem that must be found in it (none means it is right).
SELF_TEST = {
    "left and own room": (
        {"src/runtime/pool.cpp": '#include "runtime/pool.h"\n#include "tl/base/error.h"\n#include <vector>\n',
         "src/cli/main.cpp": '#include "tl/lang/parser.h"\n#include "tl/ops/ops.h"\n',
         "include/tl/tl.h": '#include "tl/kernels/modules.h"\n'}, []),
    "wrong arrow between sources": (
        {"src/base/text.cpp": '#include "tl/base/text.h"\n#include "runtime/context.h"\n'},
        ["src/base/text.cpp:2: base -> runtime"]),
    "wrong arrow in a public header": (
        {"include/tl/runtime/memory.h": '#pragma once\n\n#  include "tl/tensor/shape.h"\n'},
        ["include/tl/runtime/memory.h:3: runtime -> tensor"]),
    "wrong arrow with angle brackets": (
        {"src/kernels/fill.cpp": "#include <tl/ops/ops.h>\n"}, ["src/kernels/fill.cpp:1: kernels -> ops"]),
    "neighbours see each other one way": (
        {"src/ops/x.cpp": '#include "tl/quant/q.h"\n', "src/logic/y.cpp": '#include "tl/lang/l.h"\n',
         "src/lang/y.cpp": '#include "tl/logic/l.h"\n', "src/capi/z.cpp": '#include "tl/model/chat.h"\n',
         "src/cli/z.cpp": '#include "capi/guard.h"\n'},
        ["src/ops/x.cpp:1: ops -> quant", "src/logic/y.cpp:1: logic -> lang", "src/cli/z.cpp:1: cli -> capi"]),
    "a commented include is not one": (
        {"src/base/a.cpp": '// #include "tl/cli/x.h"\n/*\n#include "tl/cli/x.h"\n*/\n'}, []),
    "climbing out": ({"src/base/a.cpp": '#include "../runtime/context.h"\n'}, ["src/base/a.cpp:1: '../runtime"]),
    "an unknown room": ({"src/attic/a.cpp": "\n"}, ["'attic' is not a room"]),
    "vendor headers": (
        {"src/runtime/pool.cpp": "#include <cuda.h>\n", "src/ops/a.cpp": "#include <hip/hip_runtime.h>\n",
         "src/runtime/driver/cuda.cpp": "#include <cuda.h>\n"},
        ["src/runtime/pool.cpp:1: a vendor's header", "src/ops/a.cpp:1: a vendor's header"]),
    "vendor names": (
        {"src/runtime/pool.cpp": "int f() {\n  return cuMemAlloc();\n}\n", "src/ops/a.h": "hipStream_t s;\n",
         "src/ops/b.cpp": "auto p = nvrtcCompileProgram; auto q = hiprtcGetCode;\n",
         "src/kernels/fill.cu": "cudaStream s; cuStream t;\n"},
        ["src/runtime/pool.cpp:2: a vendor's name, cuMemAlloc", "src/ops/a.h:1: a vendor's name, hipStream_t",
         "src/ops/b.cpp:1: a vendor's name, nvrtcCompileProgram", "src/ops/b.cpp:1: a vendor's name, hiprtcGetCode",
         "src/kernels/fill.cu:1: a vendor's name, cuStream"]),
    "vendor names where they belong, and words that are not": (
        {"src/runtime/driver/hip.cpp": "hipModule_t m;\n", "src/kernels/gpu_warp.h": "int cuX;\n",
         "src/cli/devices.cpp": "Device::cuda(0); DeviceKind::Cuda; cursor(); hippo(); // cuMemAlloc\n"
                                'f("cuMemAlloc \\" hipFree"); g(R"(nvrtcX)"); /* hipFree */ h(\'"\'); k(1\'000);\n'},
        []),
    "a name after a string is still seen": (
        {"src/ops/a.cpp": "f(\"//\"); cuInit(0); g('\"'); hipInit(0);\n"}, ["name, cuInit", "name, hipInit"]),
}


def self_test():
    failures = 0
    for title, (files, expected) in SELF_TEST.items():
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, encoding="utf-8")
            problems, _ = check_tree(root)
        unmet = [piece for piece in expected if not any(piece in problem for problem in problems)]
        if unmet or len(problems) != len(expected):
            failures += 1
            print(f"self-test '{title}': expected {expected}, found {problems}")
    print(f"{len(SELF_TEST) - failures} of {len(SELF_TEST)} self-tests pass")
    return failures == 0


def main(arguments):
    if arguments == ["--self-test"]:
        return 0 if self_test() else 1
    if len(arguments) != 1:
        print(__doc__)
        return 2
    problems, count = check_tree(pathlib.Path(arguments[0]))
    for problem in problems:
        print(problem)
    if count == 0:
        print("no source files were found: is the path right?")
        return 1
    print(f"{count} files read, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
