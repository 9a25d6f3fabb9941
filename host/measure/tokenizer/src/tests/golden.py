"""Makes the small tokenizers in `golden` and what the real libraries say of them.

Run in this folder, with the libraries' versions that are named in `golden/expected.json`:

    python3 -m venv venv && venv/bin/pip install tiktoken sentencepiece transformers protobuf jinja2
    venv/bin/python golden.py

SentencePiece models are trained anew, and so may differ a little with its version; the expectations are made of the
same models, so files and expectations must be committed together.
"""

import base64
import datetime
import json
import pathlib
import random

import jinja2
import sentencepiece
import tiktoken
import transformers
from sentencepiece import sentencepiece_model_pb2
from transformers.utils import chat_template_utils

FOLDER = pathlib.Path(__file__).parent / "golden"

LINES = [
    "The quick brown fox jumps over the lazy dog, and the dog does not mind.",
    "A benchmark sends requests to a server and measures how long the answers take.",
    "Tokens are counted on both sides; they ought to agree, but they don't always.",
    "def main():\n    for number in range(10):\n        print(number, number * 2)",
    "Größe, Straße, café, naïve, Zürich, señor, œuvre: letters beyond ASCII.",
    "The year 2024 had 366 days; 2023 had 365. Prices: $3.50, €4,20 and £1000000.",
    "中文和日本語のテキスト。",
    "It's what we'll do: they're here, I'm there, you've been, he'd go.",
    "A  text   with    several     spaces, and\ttabs.",
    "antidisestablishmentarianism internationalization aaaaaaaa bbbbbb ababababab",
]

TEXTS = [
    "",
    "a",
    " a",
    "  a  ",
    " ",
    "   ",
    "\n",
    "Hello, world!",
    "The quick brown fox jumps over the lazy dog.",
    "the  the   the    the",
    "trailing space ",
    "trailing lines \n\n ",
    "a\n  ",
    "a \n b\r\n\r\nc\n",
    "tabs\t\tand\u00a0no-break\u3000wide",
    "It's they'RE I'ſ we'LL don't 'tis 's",
    "Größe café cafe\u0301 Å ﬁ Ⅷ ² ①",
    "camelCase HTTPServer XMLHttpRequest iPhone ABCdef ÀÉîõ ǅ ʰx",
    "1 12 123 1234 12345678 ٣٤٥ 1.5e-7",
    "中文和日本語のテキスト。 abc中文def 々〇",
    "👩‍👩‍👧 🦀🦀 \u200d\u0301\u0327 e\u0301\u0327",
    "variation ❤\ufe0f\U000e0101 end",
    "path/to/file://x//y  // comment\n/// doc",
    "!!! ??? ... --- ===\n\n\n###",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "abababababababababababababababababababababababababababababababababababababababababababababab",
    "antidisestablishmentarianism" * 5,
    "<0x41> <unk> ▁ ▁▁a",
    "unknown: \u16a0\u16a1\u16a2 \U00010330",
    "x\u0000y\u0007z",
    " ".join(LINES),
    "\n".join(LINES),
]

# Texts with special tokens in them, which `sentencepiece` itself does not look for.
MARKED = [
    "<s>a</s>",
    "a<|turn|>b",
    "<|turn|>user\nHello<|end|>\n<|turn|>assistant\n",
    "a <sep> b<sep>",
]


def some_texts():
    """More texts, made of pieces that tokenizers take different ways at."""
    made = random.Random(7)
    pieces = [
        " ", "  ", "\n", "\r\n", "\t", "the", "The", "THE", "ing", "'s", "'LL", "ſ", "1", "23", "4567", ".", ",", "/", "//",
        "é", "e\u0301", "中", "文", "の", "ß", "ʰ", "ǅ", "ª", "\u0301", "\u200d", "🦀", "\u00a0", "\u3000", "a", "B", "cD",
        "!", "?!", "_", "-", "々", "〇", "⺀", "\u2028", "\u0085", "ﬁ",
    ]
    return ["".join(made.choices(pieces, k=made.randint(1, 14))) for _ in range(120)]


# --- tiktoken ------------------------------------------------------------------------------------------------------

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
QWEN = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
KIMI = "|".join(
    [
        r"[\p{Han}]+",
        r"[^\r\n\p{L}\p{N}]?" + UPPER + "*" + LOWER + "+" + CONTRACTIONS + "?",
        r"[^\r\n\p{L}\p{N}]?" + UPPER + "+" + LOWER + "*" + CONTRACTIONS + "?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)


def public_pattern(name):
    """The pattern of one of tiktoken's own encodings, without its ranks, which would be downloaded."""
    from tiktoken_ext import openai_public

    kept = openai_public.load_tiktoken_bpe
    openai_public.load_tiktoken_bpe = lambda *_, **__: {}
    try:
        return openai_public.ENCODING_CONSTRUCTORS[name]()["pat_str"]
    finally:
        openai_public.load_tiktoken_bpe = kept


def ranks():
    """Bytes, and what often stands side by side in the lines, by the number of times."""
    tokens = [bytes([byte]) for byte in range(256)]
    counts = {}
    for line in LINES:
        for word in line.replace(" ", " \0").split("\0"):
            data = (" " + word.strip() if word.startswith(" ") else word).encode()
            for start in range(len(data)):
                for end in range(start + 2, min(start + 7, len(data)) + 1):
                    piece = data[start:end]
                    counts[piece] = counts.get(piece, 0) + 1
    often = sorted(counts, key=lambda piece: (-counts[piece] * (len(piece) - 1), piece))
    for piece in often[:320]:
        # A token that nothing merges to is as good: whole words are looked up first.
        tokens.append(piece)
    tokens += [b"  ", b"    ", b"\n\n", b" the", b"aa", b"aaa", b"aaaa", b"ab", b"ba", b"aba", b"bab", b" 's", b"\r\n"]
    unique = list(dict.fromkeys(tokens))
    return {token: rank for rank, token in enumerate(unique)}


def tiktokens(expected):
    made = ranks()
    text = "".join(f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in made.items())
    families = {
        "r50k_base": public_pattern("r50k_base"),
        "cl100k_base": public_pattern("cl100k_base"),
        "o200k_base": public_pattern("o200k_base"),
        "qwen": QWEN,
        "kimi": KIMI,
    }
    (FOLDER / "small.tiktoken").write_text(text)
    for family, pattern in families.items():
        size = len(made)
        special = {"<|turn|>": size, "<|end|>": size + 3}
        encoding = tiktoken.Encoding(family, pat_str=pattern, mergeable_ranks=made, special_tokens=special)
        texts = TEXTS + some_texts()
        if family == "qwen":
            # As its own code does before it encodes.
            import unicodedata

            normal = [unicodedata.normalize("NFC", text) for text in texts]
        else:
            normal = texts
        ids = [encoding.encode(text, allowed_special="all") for text in normal]
        marked = [encoding.encode(text, allowed_special="all") for text in MARKED]
        expected["tiktoken"].append(
            {"family": family, "special": special, "ids": ids, "marked": marked}
        )


# --- SentencePiece -------------------------------------------------------------------------------------------------

MODELS = {
    "llama": dict(
        model_type="bpe", vocab_size=420, byte_fallback=True, normalization_rule_name="identity", split_digits=True,
        remove_extra_whitespaces=False, allow_whitespace_only_pieces=True,
    ),
    "gemma": dict(
        model_type="bpe", vocab_size=440, byte_fallback=True, normalization_rule_name="identity",
        remove_extra_whitespaces=False, add_dummy_prefix=False, user_defined_symbols=["<|turn|>", "<|end|>", "▁▁", "\n"],
    ),
    "t5": dict(
        model_type="unigram", vocab_size=180, user_defined_symbols=["<sep>"], bos_id=-1,
    ),
    "fallback": dict(
        model_type="unigram", vocab_size=380, byte_fallback=True, normalization_rule_name="identity",
        remove_extra_whitespaces=False,
    ),
    "plain": dict(
        model_type="unigram", vocab_size=150, normalization_rule_name="identity", add_dummy_prefix=False,
    ),
}


def sentencepieces(expected):
    for name, options in MODELS.items():
        prefix = FOLDER / name
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([part for line in LINES for part in line.split("\n")] * 5),
            model_prefix=str(prefix), num_threads=1, character_coverage=0.98, minloglevel=2, hard_vocab_limit=False,
            **options,
        )
        prefix.with_suffix(".vocab").unlink()
        path = prefix.with_suffix(".model")
        # The trainer's own options name files of this machine.
        proto = sentencepiece_model_pb2.ModelProto.FromString(path.read_bytes())
        proto.trainer_spec.ClearField("model_prefix")
        path.write_bytes(proto.SerializeToString())
        model = sentencepiece.SentencePieceProcessor(model_file=str(path))
        ids = [model.encode(text) for text in TEXTS + some_texts()]
        expected["sentencepiece"].append(
            {"model": name, "size": model.vocab_size(), "bos": model.bos_id(), "eos": model.eos_id(), "ids": ids}
        )


# --- Chat templates ------------------------------------------------------------------------------------------------

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather <today> & \"tomorrow\" in a café",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"type": "string", "description": "Where"},
                "days": {"type": "integer", "default": 3, "maximum": 1e-7, "minimum": 1.0},
                "exact": {"type": "boolean", "default": True, "enum": [True, None, 1e16]},
            },
            "required": ["place"],
        },
    },
}
CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {
            "id": "call12345",
            "type": "function",
            "function": {"name": "weather", "arguments": {"place": "Zürich", "days": 2, "exact": False}},
        }
    ],
}
CHATS = {
    "one": [{"role": "user", "content": "Hello <there> & \"you\"!"}],
    "system": [
        {"role": "system", "content": "  Be brief. "},
        {"role": "user", "content": " What is 1 + 1?\n"},
    ],
    "turns": [
        {"role": "user", "content": "Who are you?"},
        {"role": "assistant", "content": "<think>\nLet me see.\n</think>\n\nA model."},
        {"role": "user", "content": "Sure?"},
        {"role": "assistant", "reasoning_content": "Hm.", "content": "Yes."},
        {"role": "user", "content": "Thanks."},
    ],
    "call": [
        {"role": "user", "content": "The weather?"},
        CALL,
        {"role": "tool", "name": "weather", "tool_call_id": "call12345", "content": "{\"degrees\": 21.5}"},
        {"role": "tool", "name": "weather", "tool_call_id": "call12346", "content": "{\"degrees\": 3}"},
        {"role": "assistant", "content": "21 degrees."},
        {"role": "user", "content": "And tomorrow?"},
    ],
    "parts": [{"role": "user", "content": [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]}],
    "bad": [{"role": "assistant", "content": "I begin."}, {"role": "assistant", "content": "I go on."}],
}
ROLES = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
NOW = datetime.datetime(2025, 3, 9, 14, 5, 6)


class Fixed(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


def chats(expected):
    chat_template_utils.datetime = Fixed
    for path in sorted((FOLDER / "templates").glob("*.jinja")):
        template = path.read_text()
        for name, messages in CHATS.items():
            for tools in [None, [WEATHER]]:
                for extra in [{}, {"enable_thinking": False, "add_generation_prompt": False}]:
                    given = {"add_generation_prompt": True, **ROLES, **extra}
                    try:
                        (text,), _ = chat_template_utils.render_jinja_template(
                            [messages], tools=tools, chat_template=template, **given
                        )
                        outcome = {"text": text}
                    except jinja2.exceptions.TemplateError as error:
                        outcome = {"error": str(error)}
                    expected["chats"].append(
                        {"template": path.name, "chat": name, "tools": tools is not None, "extra": extra, **outcome}
                    )


def main():
    expected = {
        "versions": {
            library.__name__: library.__version__ for library in [tiktoken, sentencepiece, transformers, jinja2]
        },
        "texts": TEXTS + some_texts(),
        "marked": MARKED,
        "tiktoken": [],
        "sentencepiece": [],
        "tools": [WEATHER],
        "messages": CHATS,
        "roles": ROLES,
        "now": NOW.isoformat(),
        "chats": [],
    }
    tiktokens(expected)
    sentencepieces(expected)
    chats(expected)
    lines = []
    for key, value in expected.items():
        if isinstance(value, list) and key != "marked":
            items = ",\n".join(json.dumps(item, ensure_ascii=True) for item in value)
            lines.append(f"{json.dumps(key)}: [\n{items}\n]")
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=True)}")
    (FOLDER / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
