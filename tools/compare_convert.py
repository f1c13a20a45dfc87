#!/usr/bin/env python3
"""Compares `tl convert` with llama.cpp's converter: compare_convert.py TL LLAMA_CPP

TL is the program, LLAMA_CPP a checkout of llama.cpp. Small checkpoints with random weights are made, one for each
architecture and kind of vocabulary, and converted by both in several types. Metadata must be the same key for key, and
tensors byte for byte, but for what docs/convert.md lists as done differently on purpose.

Needs Python's numpy, torch, sentencepiece and tqdm. The package transformers is stood in for where it is not installed:
config.json is then read as it is, and the name of the pre-tokenizer, which llama.cpp finds with its help, is given.
"""

import json
import logging
import pathlib
import struct
import subprocess
import sys
import tempfile
import types

import numpy as np
import sentencepiece
import torch

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
TYPES = ["f32", "f16", "bf16", "q8_0"]
HIDDEN, FF, HEADS, KV, HEAD, LAYERS = 64, 96, 4, 2, 16, 2


class StandInTokenizer:
    """What llama.cpp's converter asks of a tokenizer of transformers."""

    is_fast = True

    def __init__(self, folder):
        data = json.loads((pathlib.Path(folder) / "tokenizer.json").read_text(encoding="utf-8"))
        added = data["added_tokens"]
        self.added_tokens_decoder = {t["id"]: types.SimpleNamespace(**t) for t in added}
        self.vocab = {**data["model"]["vocab"], **{t["content"]: t["id"] for t in added}}

    @classmethod
    def from_pretrained(cls, folder, **_):
        return cls(folder)

    def get_added_vocab(self):
        return {t.content: i for i, t in self.added_tokens_decoder.items()}

    def encode(self, text, **_):
        return text

    def decode(self, text):
        return text


def stand_in_for_transformers():
    try:
        import transformers  # noqa: F401
    except ImportError:
        module = types.ModuleType("transformers")
        module.AutoTokenizer = StandInTokenizer
        module.AutoConfig = types.SimpleNamespace(from_pretrained=None)
        sys.modules["transformers"] = module
    for name in ("float8_e4m3fn", "float8_e5m2"):  # which older versions have not, and nothing here uses
        if not hasattr(torch, name):
            setattr(torch, name, name)


# ---- checkpoints

def write_safetensors(path, tensors, dtype):
    header, data = {}, b""
    for name, values in tensors.items():
        tensor = torch.from_numpy(values).to(dtype)
        raw = tensor.view(torch.int16).numpy() if dtype == torch.bfloat16 else tensor.numpy()
        start = len(data)
        data += raw.tobytes()
        names = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}
        header[name] = {"dtype": names[dtype], "shape": list(values.shape), "data_offsets": [start, len(data)]}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def tensors_of(kind, vocab, biases=False, tied=False, prefix="model.", head_norms=False):
    rng = np.random.default_rng(7)
    out = {}

    def add(name, *shape):
        out[name] = (rng.standard_normal(shape) * 0.5).astype(np.float32)

    add(f"{prefix}embed_tokens.weight", vocab, HIDDEN)
    for i in range(LAYERS):
        at = f"{prefix}layers.{i}."
        add(at + "input_layernorm.weight", HIDDEN)
        add(at + "post_attention_layernorm.weight", HIDDEN)
        if kind == "phi3":
            add(at + "self_attn.qkv_proj.weight", (HEADS + 2 * KV) * HEAD, HIDDEN)
            add(at + "mlp.gate_up_proj.weight", 2 * FF, HIDDEN)
        else:
            for name, rows in (("q", HEADS * HEAD), ("k", KV * HEAD), ("v", KV * HEAD)):
                add(f"{at}self_attn.{name}_proj.weight", rows, HIDDEN)
                if biases:
                    add(f"{at}self_attn.{name}_proj.bias", rows)
            add(at + "mlp.gate_proj.weight", FF, HIDDEN)
            add(at + "mlp.up_proj.weight", FF, HIDDEN)
        add(at + "self_attn.o_proj.weight", HIDDEN, HEADS * HEAD)
        add(at + "mlp.down_proj.weight", HIDDEN, FF)
        if head_norms:
            add(at + "self_attn.q_norm.weight", HEAD)
            add(at + "self_attn.k_norm.weight", HEAD)
        if kind == "gemma":
            add(at + "pre_feedforward_layernorm.weight", HIDDEN)
            add(at + "post_feedforward_layernorm.weight", HIDDEN)
    add(f"{prefix}norm.weight", HIDDEN)
    if not tied:
        add("lm_head.weight", vocab, HIDDEN)
    return out


def config_of(architecture, vocab, **more):
    return {"architectures": [architecture], "hidden_size": HIDDEN, "intermediate_size": FF,
            "num_attention_heads": HEADS, "num_key_value_heads": KV, "num_hidden_layers": LAYERS, "vocab_size": vocab,
            "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "bos_token_id": 1,
            "eos_token_id": 2, **more}


def pieces(folder, size=300):
    """A real SentencePiece vocabulary, trained on a little text."""
    text = folder / "text.txt"
    text.write_text("\n".join(f"the quick brown fox {i} jumps over the lazy dog, and {i * i} more of it"
                              for i in range(300)), encoding="utf-8")
    with open(folder / "tokenizer.model", "wb") as out:
        sentencepiece.SentencePieceTrainer.train(
            input=str(text), model_writer=out, vocab_size=size, model_type="bpe", byte_fallback=True,
            remove_extra_whitespaces=False, minloglevel=2)
    text.unlink()


def byte_vocabulary(folder, pattern, pairs, ignore_merges, template):
    letters = [chr(c) for c in range(0x21, 0x7F)] + ["\u0120"]
    merges = [["t", "h"], ["th", "e"], ["\u0120", "the"], ["a", "n"], ["\u0120", "an"]]
    vocab = {text: i for i, text in enumerate(letters + ["".join(m) for m in merges])}
    special = [{"id": len(vocab) + i, "content": text, "special": text != "<tool>", "normalized": False}
               for i, text in enumerate(["<|begin|>", "<|end|>", "<tool>", "<|turn|>"])]
    data = {"added_tokens": special,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False},
                {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]},
            "decoder": {"type": "ByteLevel"},
            "model": {"type": "BPE", "ignore_merges": ignore_merges, "byte_fallback": False, "vocab": vocab,
                      "merges": merges if pairs else [" ".join(m) for m in merges]}}
    if template:
        token, a, b = ({"SpecialToken": {"id": "<|begin|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                       {"Sequence": {"id": "B", "type_id": 1}})
        data["post_processor"] = {"type": "Sequence", "processors": [
            {"type": "ByteLevel"}, {"type": "TemplateProcessing", "single": [token, a], "pair": [token, a, token, b]}]}
    (folder / "tokenizer.json").write_text(json.dumps(data), encoding="utf-8")
    return len(vocab) + len(special)


def write_json(folder, name, data):
    (folder / name).write_text(json.dumps(data), encoding="utf-8")


def checkpoints(root):
    """Yields folder, dtype of the weights, and what llama.cpp would call the pre-tokenizer."""
    def folder(name):
        path = root / name
        path.mkdir()
        return path

    at = folder("tiny-llama-spm")
    pieces(at)
    write_json(at, "config.json", config_of("LlamaForCausalLM", 320))
    write_json(at, "tokenizer_config.json", {
        "add_bos_token": True, "add_eos_token": False, "bos_token": "<s>", "eos_token": {"content": "</s>"},
        "chat_template": "{{ messages }}", "added_tokens_decoder": {
            "0": {"content": "<unk>", "special": True}, "300": {"content": "<|im|>", "special": False},
            "301": {"content": "two\u2581words", "special": False}}})
    write_json(at, "added_tokens.json", {"<extra>": 302})
    write_json(at, "generation_config.json", {"temperature": 0.6, "top_k": 50, "top_p": 0.9, "do_sample": True})
    write_safetensors(at / "model.safetensors", tensors_of("llama", 320, biases=True), torch.float32)
    yield at, "default"

    at = folder("mistral-7b-v0.1-tied")
    pieces(at)
    write_json(at, "config.json", config_of("MistralForCausalLM", 300, head_dim=HEAD, tie_word_embeddings=True,
                                            rope_scaling={"type": "linear", "factor": 4.0}))
    tensors = tensors_of("llama", 300, tied=True)
    names = list(tensors)
    parts = [dict((n, tensors[n]) for n in names[:5]), dict((n, tensors[n]) for n in names[5:])]
    for i, part in enumerate(parts):
        write_safetensors(at / f"model-0000{i + 1}-of-00002.safetensors", part, torch.bfloat16)
    write_json(at, "model.safetensors.index.json", {"weight_map": {
        n: f"model-0000{i + 1}-of-00002.safetensors" for i, part in enumerate(parts) for n in part}})
    yield at, "default"

    at = folder("Llama-3-made-up")
    vocab = byte_vocabulary(at, LLAMA3, pairs=True, ignore_merges=True, template=True)
    write_json(at, "config.json", config_of(
        "LlamaForCausalLM", vocab + 3, bos_token_id=vocab - 4, eos_token_id=[vocab - 3, vocab - 1], rope_theta=500000.0,
        rope_scaling={"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                      "original_max_position_embeddings": 64}))
    write_json(at, "tokenizer_config.json", {"bos_token": "<|begin|>", "eos_token": "<|turn|>", "chat_template": [
        {"name": "default", "template": "a"}, {"name": "tool use", "template": "b"}]})
    write_safetensors(at / "model.safetensors", tensors_of("llama", vocab + 3), torch.bfloat16)
    yield at, "llama-bpe"

    at = folder("qwen2-made-up")
    vocab = byte_vocabulary(at, QWEN2, pairs=False, ignore_merges=False, template=False)
    write_json(at, "config.json", config_of(
        "Qwen2ForCausalLM", vocab, bos_token_id=vocab - 4, eos_token_id=vocab - 3, use_sliding_window=False,
        rope_scaling={"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024, "beta_fast": 32.0}))
    write_json(at, "tokenizer_config.json", {"add_bos_token": False, "pad_token": "<|end|>", "bos_token": None})
    (at / "chat_template.jinja").write_text("{{ x }}\n", encoding="utf-8")
    write_safetensors(at / "model.safetensors", tensors_of("llama", vocab, biases=True), torch.float16)
    yield at, "qwen2"

    at = folder("qwen3-made-up")
    vocab = byte_vocabulary(at, QWEN2, pairs=True, ignore_merges=False, template=False)
    write_json(at, "config.json", config_of("Qwen3ForCausalLM", vocab, head_dim=HEAD, tie_word_embeddings=True))
    write_safetensors(at / "model.safetensors", tensors_of("llama", vocab, tied=True, head_norms=True), torch.bfloat16)
    yield at, "qwen2"

    at = folder("gemma-2-made-up")
    pieces(at)
    write_json(at, "config.json", config_of(
        "Gemma2ForCausalLM", 304, head_dim=HEAD, attn_logit_softcapping=50.0, final_logit_softcapping=30.0,
        sliding_window=512, pad_token_id=0))
    write_safetensors(at / "model.safetensors", tensors_of("gemma", 304, tied=True), torch.bfloat16)
    yield at, "default"

    at = folder("gemma-3-made-up")
    pieces(at)
    config = config_of("Gemma3ForConditionalGeneration", 304, head_dim=HEAD, sliding_window=512,
                       rope_local_base_freq=10000.0, rope_scaling={"rope_type": "linear", "factor": 8.0})
    top = {k: config.pop(k) for k in ("architectures", "eos_token_id", "bos_token_id")}
    write_json(at, "config.json", {**top, "text_config": config, "vision_config": {}})
    tensors = tensors_of("gemma", 304, tied=True, head_norms=True, prefix="language_model.model.")
    tensors["vision_tower.vision_model.embeddings.x.weight"] = np.zeros((2, 2), np.float32)
    tensors["multi_modal_projector.mm_soft_emb_norm.weight"] = np.zeros(2, np.float32)
    write_safetensors(at / "model.safetensors", tensors, torch.bfloat16)
    yield at, "default"

    at = folder("phi-3-made-up")
    pieces(at)
    write_json(at, "config.json", config_of(
        "Phi3ForCausalLM", 310, original_max_position_embeddings=1024, sliding_window=2047, rope_scaling={
            "type": "longrope", "long_factor": [1.0 + i for i in range(8)],
            "short_factor": [1.0 + i / 8 for i in range(8)]}))
    write_json(at, "tokenizer_config.json", {"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>",
                                             "added_tokens_decoder": {"305": {"content": "<|user|>", "special": True}}})
    write_json(at, "tokenizer.json", {"added_tokens": [{"id": 306, "content": "<|x|>", "special": False}]})
    write_safetensors(at / "model.safetensors", tensors_of("phi3", 310), torch.bfloat16)
    yield at, "default"


# ---- comparing

def read(gguf, path):
    reader = gguf.GGUFReader(path)
    keys = {name: ([t.name for t in field.types], field.contents()) for name, field in reader.fields.items()
            if not name.startswith("GGUF.")}
    tensors = {t.name: (t.tensor_type.name, [int(n) for n in t.shape], t.data.tobytes()) for t in reader.tensors}
    return keys, tensors


# Keys that llama.cpp guesses from the folder's name, and scores and ids that tl finds where llama.cpp has none.
GUESSED = {"general.basename", "general.finetune", "general.version", "general.organization", "general.size_label"}
OURS = {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id", "tokenizer.ggml.unknown_token_id",
        "tokenizer.ggml.padding_token_id"}


def differences(ours, theirs):
    (our_keys, our_tensors), (their_keys, their_tensors) = ours, theirs
    for key in sorted(our_keys.keys() | their_keys.keys()):
        if key in GUESSED or (key in OURS and key not in their_keys):
            continue
        if our_keys.get(key) != their_keys.get(key):
            yield f"{key}: {str(our_keys.get(key))[:200]} and {str(their_keys.get(key))[:200]}"
    for name in sorted(our_tensors.keys() | their_tensors.keys()):
        a, b = our_tensors.get(name), their_tensors.get(name)
        if a is None or b is None or a[:2] != b[:2]:
            yield f"{name}: {a and a[:2]} and {b and b[:2]}"
        elif a[2] != b[2]:
            yield f"{name}: {sum(x != y for x, y in zip(a[2], b[2]))} of {len(a[2])} bytes are not the same"


def main():
    tl, checkout = sys.argv[1], pathlib.Path(sys.argv[2])
    stand_in_for_transformers()
    sys.path[:0] = [str(checkout), str(checkout / "gguf-py")]
    import conversion
    import gguf
    logging.disable(logging.WARNING)
    file_types = {"f32": gguf.LlamaFileType.ALL_F32, "f16": gguf.LlamaFileType.MOSTLY_F16,
                  "bf16": gguf.LlamaFileType.MOSTLY_BF16, "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0,
                  "auto": gguf.LlamaFileType.GUESSED}
    failed = compared = 0
    with tempfile.TemporaryDirectory() as root, torch.inference_mode():
        for folder, pre in checkpoints(pathlib.Path(root)):
            conversion.base.TextModel.get_vocab_base_pre = lambda self, tokenizer, pre=pre: pre
            architecture = json.loads((folder / "config.json").read_text(encoding="utf-8"))["architectures"][0]
            for kind in [*TYPES, "auto"]:
                ours, theirs = (pathlib.Path(root) / f"{who}-{folder.name}-{kind}.gguf" for who in ("ours", "theirs"))
                subprocess.run([tl, "convert", folder, "-o", ours, "--type", kind], check=True, capture_output=True)
                conversion.get_model_class(architecture)(folder, file_types[kind], theirs).write()
                a, b = read(gguf, ours), read(gguf, theirs)
                found = list(differences(a, b))
                compared += len(a[1])
                failed += bool(found)
                print(f"{folder.name} {kind}: {len(a[0])} keys, {len(a[1])} tensors, "
                      f"{'the same' if not found else 'NOT THE SAME'}")
                for line in found:
                    print("  " + line)
    print(f"{compared} tensors compared; {failed} models are not the same")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
