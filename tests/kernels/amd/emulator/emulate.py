"""emulate.py of the folder EMULATE_FROM, after mending what stops the emulator behind it on our kernels.

The HIP library of `make amd-check` imports `emulate` from the folder it is given; this is that folder.
"""

import importlib
import importlib.util
import os
import sys

# How the instruction set's pseudocode is written where the emulator cannot read it, and the same in words it can.
# The infinities, zeros and NaNs of v_div_fixup_f16:
WORDS = {
    "V_DIV_FIXUP_F16": [("sign_out ? -INF.f16 : +INF.f16", "sign_out ? 16'F(-INF) : 16'F(+INF)"),
                        ("sign_out ? -16'0.0 : 16'0.0", "sign_out ? 16'F(-0.0) : 16'F(0.0)"),
                        ("16'F(0xfe00)", "(16'F(+INF) - 16'F(+INF))")],
}


def mend():
    for family in ("rdna3", "rdna4", "cdna"):
        pcode = importlib.import_module(f"tinygrad.runtime.autogen.amd.{family}.str_pcode").PCODE
        for op in pcode:
            for old, new in WORDS.get(op.name, []):
                pcode[op] = pcode[op].replace(old, new)


if os.environ["TINYGRAD"] not in sys.path:
    sys.path.insert(0, os.environ["TINYGRAD"])
mend()
spec = importlib.util.spec_from_file_location("emulate", os.path.join(os.environ["EMULATE_FROM"], "emulate.py"))
module = importlib.util.module_from_spec(spec)
sys.modules["emulate"] = module
spec.loader.exec_module(module)
