"""Tallow from Python, by ctypes: tensors, ops, DLPack and models. Needs libtallow_c.so and nothing else.

    import numpy, tallow
    x = tallow.from_dlpack(numpy.arange(6, dtype="float32").reshape(2, 3))   # NumPy's memory, borrowed
    y = tallow.op("softmax", x)
    numpy.from_dlpack(y)                                                      # Tallow's memory, read-only

The library is found by the environment variable TALLOW_LIBRARY, else where the system looks for libraries. docs/c.md
has the rules of memory and threads; what tl/c.h says of a function holds here.
"""

import ctypes
import ctypes.util
import os
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p

DTYPES = ["u8", "u32", "i16", "i32", "i64", "f8e4m3", "f16", "bf16", "f32", "f64", "bool"]
KINDS = ["cpu", "cuda", "rocm"]
DLPACK_DEVICES = {"cpu": 1, "cuda": 2, "rocm": 10}
NONE, TENSOR, TENSORS, INTEGER, NUMBER, BOOLEAN, INTEGERS, TEXT, DTYPE, DEVICE = range(10)


class Error(Exception):
    """What a function of the library complained about."""


class CDevice(ctypes.Structure):
    _fields_ = [("kind", c_int32), ("index", c_int32)]


class CValue(ctypes.Union):
    _fields_ = [("pointer", c_void_p), ("integer", c_int64), ("number", c_double), ("text", c_char_p),
                ("device", CDevice)]


class CArgument(ctypes.Structure):
    _fields_ = [("kind", c_int32), ("count", c_size_t), ("value", CValue)]


class CTextOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("temperature", c_double), ("top_k", c_int64), ("top_p", c_double),
                ("min_p", c_double), ("repetition_penalty", c_double), ("max_tokens", c_int64), ("has_seed", c_int),
                ("seed", c_uint64), ("stop", POINTER(c_char_p)), ("stop_count", c_size_t), ("ignore_end", c_int),
                ("shift_context", c_int)]


class CModelOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("context", c_int64), ("cache_type", c_char_p), ("chat_template", c_char_p)]


class CMemory(ctypes.Structure):
    _fields_ = [(name, c_uint64) for name in ("live_bytes", "live_blocks", "peak_bytes", "pooled_bytes", "mapped_bytes")]


ON_TEXT = ctypes.CFUNCTYPE(c_int, c_char_p, c_size_t, c_void_p)

# What each function takes; all of these return a status. Handles are numbers: c_void_p.
SIGNATURES = {
    "tl_device_count": [c_int, POINTER(c_int)],
    "tl_device_parse": [c_char_p, POINTER(CDevice)],
    "tl_device_name": [CDevice, POINTER(c_void_p)],
    "tl_tensor_from_data": [c_void_p, c_int, POINTER(c_int64), c_int, CDevice, POINTER(c_void_p)],
    "tl_tensor_free": [c_void_p],
    "tl_tensor_clone": [c_void_p, POINTER(c_void_p)],
    "tl_tensor_dtype": [c_void_p, POINTER(c_int)],
    "tl_tensor_device": [c_void_p, POINTER(CDevice)],
    "tl_tensor_rank": [c_void_p, POINTER(c_int)],
    "tl_tensor_shape": [c_void_p, POINTER(c_int64), c_int],
    "tl_tensor_shares_memory": [c_void_p, c_void_p, POINTER(c_int)],
    "tl_tensor_text": [c_void_p, POINTER(c_void_p)],
    "tl_tensor_to_device": [c_void_p, CDevice, POINTER(c_void_p)],
    "tl_tensor_write": [c_void_p, c_void_p, c_uint64],
    "tl_tensor_size_bytes": [c_void_p, POINTER(c_uint64)],
    "tl_op": [c_char_p, POINTER(CArgument), c_size_t, POINTER(c_void_p), c_size_t, POINTER(c_size_t)],
    "tl_tensor_to_dlpack": [c_void_p, c_int, POINTER(c_void_p)],
    "tl_tensor_from_dlpack": [c_void_p, POINTER(c_void_p)],
    "tl_model_options_init": [POINTER(CModelOptions)],
    "tl_model_open": [c_char_p, CDevice, POINTER(CModelOptions), POINTER(c_void_p)],
    "tl_model_free": [c_void_p],
    "tl_model_tokenize": [c_void_p, c_char_p, POINTER(c_int32), c_size_t, POINTER(c_size_t)],
    "tl_text_options_init": [POINTER(CTextOptions)],
    "tl_model_generate": [c_void_p, c_char_p, POINTER(CTextOptions), ON_TEXT, c_void_p, POINTER(c_void_p), c_void_p],
    "tl_chat_new": [c_void_p, c_char_p, POINTER(CTextOptions), POINTER(c_void_p)],
    "tl_chat_say": [c_void_p, c_char_p, ON_TEXT, c_void_p, POINTER(c_void_p), c_void_p],
    "tl_chat_free": [c_void_p],
    "tl_memory": [CDevice, POINTER(CMemory)],
}


def _load():
    path = os.environ.get("TALLOW_LIBRARY") or ctypes.util.find_library("tallow_c") or "libtallow_c.so"
    library = ctypes.CDLL(path)
    for name, takes in SIGNATURES.items():
        function = getattr(library, name)
        function.argtypes, function.restype = takes, c_int
    library.tl_last_error.restype = library.tl_version.restype = c_char_p
    library.tl_text_free.argtypes, library.tl_text_free.restype = [c_void_p], None
    return library


_library = _load()
version = _library.tl_version().decode()


def _call(name, *arguments):
    if getattr(_library, name)(*arguments) != 0:
        raise Error(_library.tl_last_error().decode())


def _text(pointer):
    """The text of a `char **` result, which is freed."""
    try:
        return ctypes.string_at(pointer).decode()
    finally:
        _library.tl_text_free(pointer)


def _device(text):
    out = CDevice()
    _call("tl_device_parse", text.encode(), byref(out))
    return out


# ---- tensors


class Tensor:
    """A value on a device. Operators are ops; `del` frees it."""

    def __init__(self, handle):
        self._handle = handle

    def __del__(self):
        if getattr(self, "_handle", None) and _library is not None:
            _library.tl_tensor_free(self._handle)

    @property
    def dtype(self):
        out = c_int()
        _call("tl_tensor_dtype", self._handle, byref(out))
        return DTYPES[out.value]

    @property
    def device(self):
        out = CDevice()
        _call("tl_tensor_device", self._handle, byref(out))
        return "cpu" if out.kind == 0 else f"{KINDS[out.kind]}:{out.index}"

    @property
    def shape(self):
        rank = c_int()
        _call("tl_tensor_rank", self._handle, byref(rank))
        sizes = (c_int64 * rank.value)()
        _call("tl_tensor_shape", self._handle, sizes, rank)
        return tuple(sizes)

    def to(self, device):
        return _made("tl_tensor_to_device", self._handle, _device(device))

    def clone(self):
        return _made("tl_tensor_clone", self._handle)

    def shares_memory_with(self, other):
        out = c_int()
        _call("tl_tensor_shares_memory", self._handle, other._handle, byref(out))
        return bool(out.value)

    def write(self, data):
        """Replaces all elements by those of a contiguous buffer; who shared the memory keeps the old ones."""
        view = memoryview(data).cast("B")
        _call("tl_tensor_write", self._handle, _address(view), len(view))

    def __repr__(self):
        out = c_void_p()
        _call("tl_tensor_text", self._handle, byref(out))
        return _text(out)

    def __dlpack_device__(self):
        kind, _, index = self.device.partition(":")
        return DLPACK_DEVICES[kind], int(index or 0)

    def __dlpack__(self, stream=None, **_):
        """A capsule with the older struct. All work on the device is done by then, so `stream` does not matter."""
        out = c_void_p()
        _call("tl_tensor_to_dlpack", self._handle, 0, byref(out))
        return _new_capsule(out, _NAME, _drop_capsule)

    def __add__(self, other):
        return op("add", self, other)

    def __sub__(self, other):
        return op("sub", self, other)

    def __mul__(self, other):
        return op("mul", self, other)

    def __truediv__(self, other):
        return op("div", self, other)

    def __matmul__(self, other):
        return op("matmul", self, other)


def _made(function, *arguments):
    out = c_void_p()
    _call(function, *arguments, byref(out))
    return Tensor(out.value)


def _address(view):
    """Where a buffer begins, also one that may only be read."""
    if len(view) == 0:
        return None
    if not view.readonly:
        return ctypes.addressof(ctypes.c_char.from_buffer(view))
    return ctypes.cast(ctypes.c_char_p(bytes(view)), c_void_p)


def tensor(values, dtype="f32", device="cpu"):
    """From a number or nested lists of numbers. The elements are copied."""
    codes = {"u8": "B", "u32": "I", "i16": "h", "i32": "i", "i64": "q", "f32": "f", "f64": "d"}
    import array
    shape, flat = [], [values]
    while flat and isinstance(flat[0], (list, tuple)):
        if len({len(row) for row in flat}) != 1:
            raise Error("tensor: rows of different lengths")
        shape.append(len(flat[0]))
        flat = [value for row in flat for value in row]
    data = array.array(codes[dtype], flat)
    sizes = (c_int64 * len(shape))(*shape)
    return _made("tl_tensor_from_data", data.buffer_info()[0], DTYPES.index(dtype), sizes, len(shape), _device(device))


def op(name, *arguments):
    """Any op of `tl ops`, or a view: op("sum", x, [0]). A tensor, or a list where the op gives several."""
    keep = []
    packed = (CArgument * len(arguments))(*[_argument(a, keep) for a in arguments])
    results, count = (c_void_p * 16)(), c_size_t()
    _call("tl_op", name.encode(), packed, len(arguments), results, len(results), byref(count))
    made = [Tensor(handle) for handle in results[:count.value]]
    return made[0] if len(made) == 1 else made


def _argument(value, keep):
    """One argument of tl_op; what it points to is put into `keep`."""
    out = CArgument()
    if value is None:
        out.kind = NONE
    elif isinstance(value, Tensor):
        out.kind, out.value.pointer = TENSOR, value._handle
    elif isinstance(value, bool):
        out.kind, out.value.integer = BOOLEAN, value
    elif isinstance(value, int):
        out.kind, out.value.integer = INTEGER, value
    elif isinstance(value, float):
        out.kind, out.value.number = NUMBER, value
    elif isinstance(value, str) and value in DTYPES:
        out.kind, out.value.integer = DTYPE, DTYPES.index(value)
    elif isinstance(value, str) and value.partition(":")[0] in KINDS:
        out.kind, out.value.device = DEVICE, _device(value)
    elif isinstance(value, str):
        keep.append(value.encode())
        out.kind, out.value.text = TEXT, keep[-1]
    elif isinstance(value, (list, tuple)) and value and isinstance(value[0], Tensor):
        keep.append((c_void_p * len(value))(*[each._handle for each in value]))
        out.kind, out.count, out.value.pointer = TENSORS, len(value), ctypes.addressof(keep[-1])
    elif isinstance(value, (list, tuple)):
        keep.append((c_int64 * len(value))(*value))
        out.kind, out.count, out.value.pointer = INTEGERS, len(value), ctypes.addressof(keep[-1])
    else:
        raise Error(f"an op cannot take a {type(value).__name__}")
    return out


# ---- DLPack: a capsule named "dltensor" has a struct that nobody took yet, "used_dltensor" one that has an owner

_NAME, _USED = b"dltensor", b"used_dltensor"
_DESTRUCTOR = ctypes.PYFUNCTYPE(None, c_void_p)  # is given a capsule that is going, which nothing may hold on to
_api = ctypes.pythonapi
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, c_char_p, _DESTRUCTOR)(("PyCapsule_New", _api))
_is_valid = ctypes.PYFUNCTYPE(c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", _api))
_get_pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", _api))
_set_name = ctypes.PYFUNCTYPE(c_int, c_void_p, c_char_p)(("PyCapsule_SetName", _api))


class CManaged(ctypes.Structure):
    """The older struct of DLPack, as far as its deleter."""

    _fields_ = [("tensor", ctypes.c_byte * 48), ("context", c_void_p), ("deleter", ctypes.CFUNCTYPE(None, c_void_p))]


@_DESTRUCTOR
def _drop_capsule(capsule):
    if _is_valid(capsule, _NAME):  # nobody took what is in it
        pointer = _get_pointer(capsule, _NAME)
        CManaged.from_address(pointer).deleter(pointer)


def from_dlpack(source):
    """A tensor over the memory of anything with __dlpack__; it is given back when the last tensor over it is gone."""
    capsule = source.__dlpack__()
    if not _is_valid(id(capsule), _NAME):
        raise Error("from_dlpack: the capsule is empty or was taken before")
    out = _made("tl_tensor_from_dlpack", _get_pointer(id(capsule), _NAME))
    _set_name(id(capsule), _USED)
    return out


# ---- models


class Model:
    """A GGUF file on a device. `chat_template` names one that is built in, instead of the model's own."""

    def __init__(self, path, device="auto", chat_template=None):
        options, out = CModelOptions(), c_void_p()
        _call("tl_model_options_init", byref(options))
        options.chat_template = chat_template.encode() if chat_template else None
        _call("tl_model_open", os.fsencode(path), _device(device), byref(options), byref(out))
        self._handle = out.value

    def __del__(self):
        if getattr(self, "_handle", None) and _library is not None:
            _library.tl_model_free(self._handle)

    def tokenize(self, text):
        count = c_size_t()
        _call("tl_model_tokenize", self._handle, text.encode(), None, 0, byref(count))
        tokens = (c_int32 * max(count.value, 1))()
        _call("tl_model_tokenize", self._handle, text.encode(), tokens, len(tokens), byref(count))
        return list(tokens[:count.value])

    def generate(self, prompt, on_text=None, **options):
        out = c_void_p()
        _call("tl_model_generate", self._handle, prompt.encode(), byref(_text_options(options)), _listener(on_text), None,
              byref(out), None)
        return _text(out)

    def chat(self, system=None, **options):
        return Chat(self, system, options)


class Chat:
    """A chat that goes on, turn by turn."""

    def __init__(self, model, system, options):
        out = c_void_p()
        _call("tl_chat_new", model._handle, system.encode() if system else None, byref(_text_options(options)), byref(out))
        self._handle = out.value

    def __del__(self):
        if getattr(self, "_handle", None) and _library is not None:
            _library.tl_chat_free(self._handle)

    def say(self, message, on_text=None):
        out = c_void_p()
        _call("tl_chat_say", self._handle, message.encode(), _listener(on_text), None, byref(out), None)
        return _text(out)


def _text_options(given):
    """temperature, top_k, top_p, min_p, repetition_penalty, max_tokens, seed, ignore_end, shift_context"""
    out = CTextOptions()
    _call("tl_text_options_init", byref(out))
    known = {name for name, _ in CTextOptions._fields_} - {"struct_size", "has_seed", "stop", "stop_count"}
    for name, value in given.items():
        if name not in known:
            raise Error(f"there is no option '{name}'; there are {', '.join(sorted(known))}")
        setattr(out, name, value)
    out.has_seed = "seed" in given
    return out


def _listener(on_text):
    """A callback that is told pieces of text; the answer ends when it returns False."""
    if on_text is None:
        return ON_TEXT(0)
    return ON_TEXT(lambda text, length, user: 0 if on_text(text.decode()) is False else 1)


def memory(device="cpu"):
    """live_bytes, live_blocks, peak_bytes, pooled_bytes, mapped_bytes"""
    out = CMemory()
    _call("tl_memory", _device(device), byref(out))
    return {name: getattr(out, name) for name, _ in CMemory._fields_}
