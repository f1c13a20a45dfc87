#!/usr/bin/env python3
"""Writes a GGUF model with random weights: as large as a real one, made in seconds.

    make_model.py OUT.gguf                 the shape of TinyLlama 1.1B, F16, 2.2 GB
    make_model.py --layers 2 --width 256 --vocabulary 512 --feed-forward 512 --heads 4 --kv-heads 2 OUT.gguf

It has the metadata of a llama model and a vocabulary of made-up words, so that programs which run models take it. What
it says is nonsense. The same arguments give the same file. `tl quantize OUT.gguf SMALL.gguf Q4_K_M` makes smaller ones.

Weights are normal numbers of the usual size for the width of a layer. A few million are drawn; every row begins
somewhere else in them, so that writing is as fast as the disk and matrices have full rank.
"""

import argparse
import os
import random
import struct
import sys

ALIGNMENT = 32
U32, F32, STRING, ARRAY, I32 = 4, 6, 8, 9, 5
TYPE_F32, TYPE_F16 = 0, 1


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def key(name, kind, value):
    return text(name) + struct.pack("<I", kind) + value


def array(name, kind, count, body):
    return key(name, ARRAY, struct.pack("<IQ", kind, count) + body)


def metadata(shape):
    """The encoded keys, one each."""
    u32 = lambda name, value: key(name, U32, struct.pack("<I", value))
    keys = [key("general.architecture", STRING, text("llama")),
            key("general.name", STRING, text("random weights")),
            u32("general.file_type", 1), u32("general.quantization_version", 2),
            u32("llama.context_length", shape.context), u32("llama.embedding_length", shape.width),
            u32("llama.block_count", shape.layers), u32("llama.feed_forward_length", shape.feed_forward),
            u32("llama.attention.head_count", shape.heads), u32("llama.attention.head_count_kv", shape.kv_heads),
            u32("llama.rope.dimension_count", shape.width // shape.heads),
            key("llama.rope.freq_base", F32, struct.pack("<f", 10000)),
            key("llama.attention.layer_norm_rms_epsilon", F32, struct.pack("<f", 1e-5)),
            u32("llama.vocab_size", shape.vocabulary)]
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


def tensors(shape):
    """(name, rows, columns, type) in the order of the file; one row for a vector."""
    width, kv = shape.width, shape.width // shape.heads * shape.kv_heads
    yield "token_embd.weight", shape.vocabulary, width, TYPE_F16
    for layer in range(shape.layers):
        for name, rows, columns in (("attn_norm", 1, width), ("attn_q", width, width), ("attn_k", kv, width),
                                    ("attn_v", kv, width), ("attn_output", width, width), ("ffn_norm", 1, width),
                                    ("ffn_gate", shape.feed_forward, width), ("ffn_up", shape.feed_forward, width),
                                    ("ffn_down", width, shape.feed_forward)):
            yield f"blk.{layer}.{name}.weight", rows, columns, TYPE_F32 if rows == 1 else TYPE_F16
    yield "output_norm.weight", 1, width, TYPE_F32
    if not shape.tied:
        yield "output.weight", shape.vocabulary, width, TYPE_F16


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
    most = max(shape.width, shape.feed_forward)
    # The variance of a product stays that of its input.
    drawn = {columns: struct.pack(f"<{most + shape.drawn}e", *(draw.gauss(0, columns ** -0.5)
                                                               for _ in range(most + shape.drawn)))
             for columns in sorted({columns for _, rows, columns, _ in listed if rows > 1})}
    with open(path, "wb", buffering=1 << 22) as file:
        file.write(header.ljust(padded(len(header)), b"\0"))
        for _, rows, columns, kind in listed:
            if kind == TYPE_F32:
                body = struct.pack(f"<{columns}f", *(draw.gauss(1, 0.02) for _ in range(columns)))
                file.write(body.ljust(padded(len(body)), b"\0"))
                continue
            source, size = memoryview(drawn[columns]), 2 * columns
            for _ in range(rows):
                start = 2 * draw.randrange(shape.drawn)
                file.write(source[start:start + size])
            file.write(b"\0" * (padded(rows * size) - rows * size))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    for name, default, meaning in (("vocabulary", 32000, "words"), ("width", 2048, "of a hidden state"),
                                   ("layers", 22, ""), ("heads", 32, "of a layer"), ("kv-heads", 4, "that heads share"),
                                   ("feed-forward", 5632, "width of the middle of a feed-forward part"),
                                   ("context", 2048, "tokens"), ("seed", 1, "of the random numbers"),
                                   ("drawn", 1 << 20, "how many numbers are drawn for each width of rows")):
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N", help=f"{meaning} (default {default})")
    parser.add_argument("--tied", action="store_true", help="no output matrix: the embedding serves for it")
    shape = parser.parse_args()
    for name in ("vocabulary", "width", "layers", "heads", "kv_heads", "feed_forward", "context", "drawn"):
        if getattr(shape, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    if shape.width % shape.heads or shape.heads % shape.kv_heads:
        parser.error("the width must be a multiple of the heads, and the heads of the kv-heads")
    try:
        write(shape.out, shape)
    except OSError as error:
        sys.exit(f"make_model.py: {error}")
    print(f"{shape.out}: {os.path.getsize(shape.out) / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
