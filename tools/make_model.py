#!/usr/bin/env python3
"""Writes a GGUF model with random weights: as large as a real one, made in seconds.

    make_model.py OUT.gguf                 the shape of TinyLlama 1.1B, F16, 2.2 GB
    make_model.py --layers 2 --width 256 --vocabulary 512 --feed-forward 512 --heads 4 --kv-heads 2 OUT.gguf
    make_model.py --architecture gemma3 --head-size 256 --window 512 --rope-scaling linear OUT.gguf

It has the metadata of such a model and a vocabulary of made-up words, so that programs which run models take it. What
it says is nonsense. Every architecture has what is its own (norms of heads, biases, merged matrices, caps). The same arguments give the same file. `tl quantize OUT.gguf SMALL.gguf Q4_K_M` makes smaller ones.

Weights are normal numbers of the usual size for the width of a layer. A few million are drawn; every row begins
somewhere else in them, so that writing is as fast as the disk and matrices have full rank.
"""

import argparse
import math
import os
import random
import struct
import sys

ALIGNMENT = 32
U32, F32, STRING, ARRAY, I32 = 4, 6, 8, 9, 5
TYPE_F32, TYPE_F16 = 0, 1
ARCHITECTURES = ("llama", "qwen2", "qwen3", "gemma2", "gemma3", "phi3")
SCALINGS = ("none", "linear", "yarn", "llama3", "longrope")


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def key(name, kind, value):
    return text(name) + struct.pack("<I", kind) + value


def array(name, kind, count, body):
    return key(name, ARRAY, struct.pack("<IQ", kind, count) + body)


def u32(name, value):
    return key(name, U32, struct.pack("<I", value))


def f32(name, value):
    return key(name, F32, struct.pack("<f", value))


def is_gemma(shape):
    return shape.architecture in ("gemma2", "gemma3")


def rope_keys(shape, name):
    """How heads turn, and how that is scaled for texts longer than the original context."""
    keys = []
    if shape.rope_scaling in ("linear", "yarn", "longrope"):
        keys.append(key(name("rope.scaling.type"), STRING, text(shape.rope_scaling)))
    if shape.rope_scaling in ("linear", "yarn"):
        keys.append(f32(name("rope.scaling.factor"), shape.rope_factor))
    if shape.rope_scaling in ("yarn", "longrope"):
        keys.append(u32(name("rope.scaling.original_context_length"), shape.original_context))
    if shape.rope_scaling == "longrope":
        ratio = shape.context / shape.original_context
        keys.append(f32(name("rope.scaling.attn_factor"),
                        math.sqrt(1 + math.log(ratio) / math.log(shape.original_context)) if ratio > 1 else 1))
    return keys


def metadata(shape):
    """The encoded keys, one each."""
    name = lambda ending: f"{shape.architecture}.{ending}"
    keys = [key("general.architecture", STRING, text(shape.architecture)),
            key("general.name", STRING, text("random weights")),
            u32("general.file_type", shape.kind), u32("general.quantization_version", 2),
            u32(name("context_length"), shape.context), u32(name("embedding_length"), shape.width),
            u32(name("block_count"), shape.layers), u32(name("feed_forward_length"), shape.feed_forward),
            u32(name("attention.head_count"), shape.heads), u32(name("attention.head_count_kv"), shape.kv_heads),
            u32(name("rope.dimension_count"), shape.rope_size), f32(name("rope.freq_base"), shape.rope_base),
            f32(name("attention.layer_norm_rms_epsilon"), 1e-5), u32(name("vocab_size"), shape.vocabulary)]
    if shape.head_size * shape.heads != shape.width or is_gemma(shape):
        keys += [u32(name("attention.key_length"), shape.head_size), u32(name("attention.value_length"), shape.head_size)]
    if shape.window:
        keys.append(u32(name("attention.sliding_window"), shape.window))
    if shape.architecture == "gemma2":
        keys += [f32(name("attn_logit_softcapping"), shape.attention_softcap),
                 f32(name("final_logit_softcapping"), shape.output_softcap)]
    if shape.architecture == "gemma3":
        keys.append(f32(name("rope.freq_base_swa"), 10000))
    keys += rope_keys(shape, name)
    # The parts of a SentencePiece vocabulary: three control words, the 256 bytes, then words by falling score.
    words = (["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)])[:shape.vocabulary]
    kinds = ([2, 3, 3] + [6] * 256)[:shape.vocabulary]
    words += [f"\u2581w{i}" for i in range(len(words), shape.vocabulary)]
    kinds += [1] * (shape.vocabulary - len(kinds))
    scores = [0.0 if kind != 1 else -float(i) for i, kind in enumerate(kinds)]
    count = len(words)
    keys += [key("tokenizer.ggml.model", STRING, text("llama")),
             array("tokenizer.ggml.tokens", STRING, count, b"".join(text(word) for word in words)),
             array("tokenizer.ggml.scores", F32, count, struct.pack(f"<{count}f", *scores)),
             array("tokenizer.ggml.token_type", I32, count, struct.pack(f"<{count}i", *kinds)),
             u32("tokenizer.ggml.bos_token_id", 1), u32("tokenizer.ggml.eos_token_id", 2),
             u32("tokenizer.ggml.unknown_token_id", 0)]
    return keys


def layer_tensors(shape):
    """(name, rows, columns) of a layer; one row for a vector."""
    width, hidden = shape.width, shape.feed_forward
    queries, values = shape.head_size * shape.heads, shape.head_size * shape.kv_heads
    parts = [("attn_norm", 1, width)]
    if shape.architecture == "phi3":
        parts.append(("attn_qkv", queries + 2 * values, width))
    else:
        parts += [("attn_q", queries, width), ("attn_k", values, width), ("attn_v", values, width)]
    if shape.architecture in ("qwen3", "gemma3"):
        parts += [("attn_q_norm", 1, shape.head_size), ("attn_k_norm", 1, shape.head_size)]
    parts.append(("attn_output", width, queries))
    if is_gemma(shape):
        parts.append(("post_attention_norm", 1, width))
    parts.append(("ffn_norm", 1, width))
    if shape.architecture == "phi3":
        parts.append(("ffn_up", 2 * hidden, width))
    else:
        parts += [("ffn_gate", hidden, width), ("ffn_up", hidden, width)]
    parts.append(("ffn_down", width, hidden))
    if is_gemma(shape):
        parts.append(("post_ffw_norm", 1, width))
    return parts


def has_bias(shape, part):
    return part in ("attn_q", "attn_k", "attn_v") and (shape.architecture == "qwen2" or shape.biases)


def tensors(shape):
    """(name, rows, columns, type) in the order of the file; one row for a vector."""
    width = shape.width
    yield "token_embd.weight", shape.vocabulary, width, shape.kind
    for layer in range(shape.layers):
        for name, rows, columns in layer_tensors(shape):
            yield f"blk.{layer}.{name}.weight", rows, columns, TYPE_F32 if rows == 1 else shape.kind
            if has_bias(shape, name):
                yield f"blk.{layer}.{name}.bias", 1, rows, TYPE_F32
    yield "output_norm.weight", 1, width, TYPE_F32
    if not shape.tied:
        yield "output.weight", shape.vocabulary, width, shape.kind
    names = {"llama3": ["rope_freqs.weight"],
             "longrope": ["rope_factors_long.weight", "rope_factors_short.weight"]}
    for name in names.get(shape.rope_scaling, []):
        yield name, 1, shape.rope_size // 2, TYPE_F32


def llama3_factors(shape):
    """Waves longer than the original context are stretched, those of a quarter of it are kept."""
    factors = []
    for i in range(0, shape.rope_size, 2):
        turns = shape.original_context / (2 * math.pi * shape.rope_base ** (i / shape.rope_size))
        kept = min(1, max(0, (turns - 1) / 3))
        factors.append(1 / ((1 - kept) / shape.rope_factor + kept))
    return factors


def vector(shape, name, count, draw):
    """Norms are about 1 and biases about 0."""
    if name == "rope_freqs.weight":
        return llama3_factors(shape)
    if name == "rope_factors_long.weight":
        return [1 + i * (shape.rope_factor - 1) / max(1, count - 1) for i in range(count)]
    if name == "rope_factors_short.weight":
        return [1 + i / (8 * count) for i in range(count)]
    if name.endswith(".bias"):
        return [draw.gauss(0, 0.2) for _ in range(count)]
    return [draw.gauss(1, 0.02) for _ in range(count)]


def padded(size):
    return -(-size // ALIGNMENT) * ALIGNMENT


def write(path, shape):
    listed = list(tensors(shape))
    keys = metadata(shape)
    header = b"GGUF" + struct.pack("<IQQ", 3, len(listed), len(keys)) + b"".join(keys)
    offset = 0
    for name, rows, columns, kind in listed:
        sizes = (columns,) if rows == 1 else (columns, rows)
        header += text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, kind, offset)
        offset += padded(rows * columns * (4 if kind == TYPE_F32 else 2))
    draw = random.Random(shape.seed)
    most = max(shape.width, shape.feed_forward, shape.head_size * shape.heads)
    # The variance of a product stays that of its input.
    code, bytes_each = ("e", 2) if shape.kind == TYPE_F16 else ("f", 4)
    drawn = {columns: struct.pack(f"<{most + shape.drawn}{code}", *(draw.gauss(0, columns ** -0.5)
                                                                    for _ in range(most + shape.drawn)))
             for columns in sorted({columns for _, rows, columns, _ in listed if rows > 1})}
    with open(path, "wb", buffering=1 << 22) as file:
        file.write(header.ljust(padded(len(header)), b"\0"))
        for name, rows, columns, _ in listed:
            if rows == 1:
                body = struct.pack(f"<{columns}f", *vector(shape, name, columns, draw))
                file.write(body.ljust(padded(len(body)), b"\0"))
                continue
            source, size = memoryview(drawn[columns]), bytes_each * columns
            for _ in range(rows):
                start = bytes_each * draw.randrange(shape.drawn)
                file.write(source[start:start + size])
            file.write(b"\0" * (padded(rows * size) - rows * size))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--architecture", choices=ARCHITECTURES, default="llama", help="(default llama)")
    for name, default, meaning in (("vocabulary", 32000, "words"), ("width", 2048, "of a hidden state"),
                                   ("layers", 22, ""), ("heads", 32, "of a layer"), ("kv-heads", 4, "that heads share"),
                                   ("feed-forward", 5632, "width of the middle of a feed-forward part"),
                                   ("context", 2048, "tokens"), ("seed", 1, "of the random numbers"),
                                   ("drawn", 1 << 20, "how many numbers are drawn for each width of rows")):
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N", help=f"{meaning} (default {default})")
    parser.add_argument("--head-size", type=int, metavar="N", help="(default: the width divided by the heads)")
    parser.add_argument("--window", type=int, metavar="N", default=0,
                        help="positions that layers with a window see (default: none)")
    parser.add_argument("--rope-size", type=int, metavar="N", help="elements of a head that turn (default: all)")
    parser.add_argument("--rope-base", type=float, metavar="X", help="(default 10000, and 1000000 for gemma3)")
    parser.add_argument("--rope-scaling", choices=SCALINGS, default="none", help="for long texts (default none)")
    parser.add_argument("--rope-factor", type=float, default=8.0, metavar="X", help="of the scaling (default 8)")
    parser.add_argument("--original-context", type=int, metavar="N",
                        help="before the scaling (default: the context divided by the factor)")
    parser.add_argument("--attention-softcap", type=float, default=50.0, metavar="X", help="of gemma2 (default 50)")
    parser.add_argument("--output-softcap", type=float, default=30.0, metavar="X", help="of gemma2 (default 30)")
    parser.add_argument("--biases", action="store_true", help="of queries, keys and values; qwen2 always has them")
    parser.add_argument("--type", choices=("f16", "f32"), default="f16", help="of matrices (default f16)")
    parser.add_argument("--tied", action="store_true", help="no output matrix: the embedding serves for it")
    return parser


def complete(shape, parser):
    """What was not given, and what does not go together."""
    positive = ["vocabulary", "width", "layers", "heads", "kv_heads", "feed_forward", "context", "drawn"]
    positive += [name for name in ("head_size", "rope_size", "rope_base", "original_context", "rope_factor",
                                   "attention_softcap", "output_softcap") if getattr(shape, name) is not None]
    for name in positive:
        if not getattr(shape, name) > 0:
            least = "above 0" if isinstance(getattr(shape, name), float) else "at least 1"
            parser.error(f"--{name.replace('_', '-')} must be {least}")
    if shape.head_size is None:
        if shape.width % shape.heads:
            parser.error("the width must be a multiple of the heads, or --head-size be given")
        shape.head_size = shape.width // shape.heads
    if shape.heads % shape.kv_heads:
        parser.error("the heads must be a multiple of the kv-heads")
    if shape.architecture == "phi3" and shape.head_size * shape.heads != shape.width:
        parser.error("the heads of phi3 are as wide together as the model")
    shape.rope_size = shape.rope_size or shape.head_size
    if shape.rope_size % 2 or shape.rope_size > shape.head_size:
        parser.error("--rope-size must be even and at most the size of a head")
    shape.rope_base = shape.rope_base or (1e6 if shape.architecture == "gemma3" else 1e4)
    shape.original_context = shape.original_context or max(2, int(shape.context / shape.rope_factor))
    if shape.window < 0:
        parser.error("--window must be at least 0")
    if shape.biases and shape.architecture == "phi3":
        parser.error("phi3 has no biases")
    if is_gemma(shape):
        shape.tied = True
    shape.kind = TYPE_F16 if shape.type == "f16" else TYPE_F32
    return shape


def main():
    parser = arguments()
    shape = complete(parser.parse_args(), parser)
    try:
        write(shape.out, shape)
    except OSError as error:
        sys.exit(f"make_model.py: {error}")
    print(f"{shape.out}: {os.path.getsize(shape.out) / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
