"""Writes a Qwen3 of two layers and random weights, with a real tokenizer, for llama.cpp.

    python3 tiny_gguf.py TOKENIZER FILE

TOKENIZER is a folder with the tokenizer of a Qwen3 model. The weights come from a fixed seed, and are the same each time.
Needs the packages `gguf` and `numpy`.
"""

import json
import pathlib
import sys

import gguf
import numpy

WIDTH, INNER, LAYERS, HEADS, KEY_HEADS, HEAD = 64, 128, 2, 2, 1, 64
VOCABULARY = 151936


def vocabulary(writer, folder):
    """The tokens with their kinds, the merges, and the template of conversations."""
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    tokens = [f"[PAD{number}]" for number in range(VOCABULARY)]
    kinds = [gguf.TokenType.UNUSED] * VOCABULARY
    for token, number in tokenizer["model"]["vocab"].items():
        tokens[number], kinds[number] = token, gguf.TokenType.NORMAL
    for token in tokenizer["added_tokens"]:
        special = gguf.TokenType.CONTROL if token["special"] else gguf.TokenType.USER_DEFINED
        tokens[token["id"]], kinds[token["id"]] = token["content"], special
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in tokenizer["model"]["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)
    writer.add_eos_token_id(tokens.index("<|im_end|>"))
    writer.add_pad_token_id(tokens.index("<|endoftext|>"))
    writer.add_add_bos_token(False)
    writer.add_chat_template(settings["chat_template"])


def weights(writer):
    random = numpy.random.default_rng(1)

    def add(name, *shape):
        normal = random.standard_normal(shape, dtype=numpy.float32)
        # Norms stay near one, and sums near the size of their terms.
        tensor = 1 + 0.1 * normal if len(shape) == 1 else normal / numpy.sqrt(shape[-1]).astype(numpy.float32)
        writer.add_tensor(name, tensor.astype(numpy.float32))

    add("token_embd.weight", VOCABULARY, WIDTH)
    add("output_norm.weight", WIDTH)
    add("output.weight", VOCABULARY, WIDTH)
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        add(block + "attn_norm.weight", WIDTH)
        add(block + "attn_q.weight", HEADS * HEAD, WIDTH)
        add(block + "attn_k.weight", KEY_HEADS * HEAD, WIDTH)
        add(block + "attn_v.weight", KEY_HEADS * HEAD, WIDTH)
        add(block + "attn_output.weight", WIDTH, HEADS * HEAD)
        add(block + "attn_q_norm.weight", HEAD)
        add(block + "attn_k_norm.weight", HEAD)
        add(block + "ffn_norm.weight", WIDTH)
        add(block + "ffn_gate.weight", INNER, WIDTH)
        add(block + "ffn_up.weight", INNER, WIDTH)
        add(block + "ffn_down.weight", WIDTH, INNER)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    writer = gguf.GGUFWriter(sys.argv[2], "qwen3")
    writer.add_name("tiny")
    writer.add_block_count(LAYERS)
    writer.add_context_length(40960)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1000000.0)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    vocabulary(writer, pathlib.Path(sys.argv[1]))
    weights(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
