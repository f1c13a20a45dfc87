"""emulate.py of the folder EMULATE_FROM, after mending what the emulator behind it cannot run or gets wrong.

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


def mend_pseudocode():
    for family in ("rdna3", "rdna4", "cdna"):
        pcode = importlib.import_module(f"tinygrad.runtime.autogen.amd.{family}.str_pcode").PCODE
        for op in pcode:
            for old, new in WORDS.get(op.name, []):
                pcode[op] = pcode[op].replace(old, new)


def mend_16_bit_registers(emu):
    """VOP1, VOP2 and VOPC with 16-bit operands: on CDNA the eight bits of a register field are a register, v0 to v255,
    of which the low half is meant (halves are chosen by SDWA and by OPSEL of VOP3). From RDNA3 on such fields have
    seven bits for the register, and the eighth chooses the half. The emulator reads all of them in the second way, so
    that `v_cvt_f32_f16_e32 v0, v144` took the high half of v16. V_CMPX writes VCC beside EXEC, as it does before RDNA.
    """
    cdna, uint32, uint64 = emu.irc, emu.dtypes.uint32, emu.dtypes.uint64

    def sources(inst, ctx, lane):
        kind, literal = type(inst), ctx.optional_field(inst, "literal")
        values = {"S0": ctx.rsrc_dyn(ctx.inst_field(kind.src0), lane, inst.canonical_op_bits["s0"], literal)}
        if hasattr(kind, "vsrc1"):
            values["S1"] = ctx.rvgpr_dyn(ctx.inst_field(kind.vsrc1), lane)
        if literal is not None:
            values["SIMM16"] = literal
        return values

    def compute(inst, ctx):
        if 16 not in inst.canonical_op_bits.values():
            return emu._compile_vop12(inst, ctx)
        lane, vdst = ctx.range(), ctx.inst_field(type(inst).vdst)
        values = {**sources(inst, ctx, lane), "D0": ctx.rvgpr_dyn(vdst, lane), "OPSEL": emu.UOp.const(0, uint32)}
        return ctx.compile_vop_pcode(inst.op, values, lane, vdst, ctx.rexec())

    def compare(inst, ctx):
        if inst.canonical_op_bits["s0"] != 16:
            return emu._compile_vopc(inst, ctx)

        def bit(lane):
            values = {**sources(inst, ctx, lane), "laneId": lane, "D0": emu.UOp.const(0, uint64)}
            assigned = emu.parse_pcode(emu.get_pcode(inst.op), values)[1]
            return next(value.cast(uint32) for name, value in assigned if "[laneId]" in name)
        mask = ctx.unroll_lanes(bit, ctx.rexec())
        stores = ctx.wmask(emu._c(emu.VCC_LO.offset), mask)
        if "CMPX" in inst.op.name:
            stores += ctx.wmask(emu._c(emu.EXEC_LO.offset), mask)
        return emu.UOp.sink(*stores, *ctx.inc_pc())

    emu._INST_HANDLERS.update({cdna.VOP1: compute, cdna.VOP2: compute, cdna.VOPC: compare})


def mend_sdwa_modifiers(emu):
    """SDWA: SRCn_ABS, then SRCn_NEG, change the sign of a floating-point operand after SRCn_SEL has selected it. The
    emulator leaves both out: `v_cvt_f32_f16_sdwa v0, -|v1|` kept the sign of v1. It leaves out CLMP and OMOD as well,
    which our kernels do not use: they are refused.
    """
    compile_sdwa, select_ = emu._compile_sdwa, emu._sdwa_select

    def compile_(inst, ctx):
        if emu._iattr(inst, "clmp") or emu._iattr(inst, "omod"):
            raise NotImplementedError("SDWA with an output modifier")
        selectors = [ctx.inst_field(type(inst).src0_sel), ctx.inst_field(type(inst).src1_sel)]

        def select(value, selector, sign_extend):
            n = next(n for n in range(2) if selector is selectors[n])
            return emu._apply_src_mods(select_(value, selector, sign_extend), 0, emu._iattr(inst, f"src{n}_abs"),
                                       emu._iattr(inst, f"src{n}_neg"), inst.canonical_op_bits[f"s{n}"])
        emu._sdwa_select = select
        try:
            return compile_sdwa(inst, ctx)
        finally:
            emu._sdwa_select = select_

    kinds = [kind for kind, handler in emu._INST_HANDLERS.items() if handler is compile_sdwa]
    emu._INST_HANDLERS.update(dict.fromkeys(kinds, compile_))


def mend_lds_accumulators(emu):
    """LDS instructions of CDNA with the ACC bit: the data comes from an accumulation register, as in
    `ds_write_b32 v1, a0`. The emulator does that for memory and not for LDS: it stored v0.
    """
    compile_mem = emu._compile_mem_op

    def compile_(inst, ctx):
        if not emu._iattr(inst, "acc"):
            return compile_mem(inst, ctx)
        address, kind, read = ctx.inst_field(type(inst).addr), type(ctx), type(ctx).rvgpr_dyn

        def read_data(self, register, *rest):
            return (read if register is address else kind.raccvgpr_dyn)(self, register, *rest)
        kind.rvgpr_dyn = read_data
        try:
            return compile_mem(inst, ctx)
        finally:
            kind.rvgpr_dyn = read
    emu._INST_HANDLERS[emu.irc.DS] = compile_


def mend_odd_halves(emu):
    """Two bytes from an odd address, as the compiler asks for where it may (`global_load_d16_b16 v24, v[12:13], off
    offset:133`). The emulator left the lowest bit of the address out. Four bytes it takes from any address.
    """
    pcode = sys.modules[emu.parse_pcode.__module__]
    load, uint32 = pcode.Parser._handle_mem_load, emu.dtypes.uint32

    def load_any(self, address, dtype):
        if dtype not in (emu.dtypes.uint16, emu.dtypes.int16):
            return load(self, address, dtype)
        return pcode._cast_to(load(self, address, uint32) & emu.UOp.const(0xFFFF, uint32), dtype)
    pcode.Parser._handle_mem_load = load_any


if os.environ["TINYGRAD"] not in sys.path:
    sys.path.insert(0, os.environ["TINYGRAD"])
mend_pseudocode()
spec = importlib.util.spec_from_file_location("emulate", os.path.join(os.environ["EMULATE_FROM"], "emulate.py"))
module = importlib.util.module_from_spec(spec)
sys.modules["emulate"] = module
spec.loader.exec_module(module)
mend_16_bit_registers(module._emu())
mend_sdwa_modifiers(module._emu())
mend_lds_accumulators(module._emu())
mend_odd_halves(module._emu())
