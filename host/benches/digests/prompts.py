"""Digests of the prompts of SGLang's and vLLM's own code, to compare with a dataset plugin.

    pip download --no-deps --dest WHEELS sglang==0.5.23 vllm==0.32.0
    python -m venv VENV && VENV/bin/pip install numpy==2.3.5 tokenizers
    VENV/bin/python prompts.py WHEELS > ../../../plugins/datasets/shared-prefix/src/goldens.json

The script takes only the prompt modules from the wheels, and runs them unchanged. An empty object replaces their other
imports, so the script needs neither tool's dependencies.

Without `--tokenizer` the tokenizer is `pairs` of the plugins' unit tests, written again below. With `--tokenizer FOLDER`
it is the `tokenizer.json` in that folder. `--write FOLDER` also writes the lines of each digest, to find the first
difference.

A digest is the SHA-256 of one line of compact JSON per conversation, in order: a list of its prompts, turn by turn,
the number of tokens of the first, with the tokens that the model adds, and the number of output tokens. SGLang counts
the tokens in this way too. vLLM reports its number of ids; their text may have another number.
"""

import argparse
import contextlib
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import io
import json
import pathlib
import random
import re
import sys
import tempfile
import types
import unittest.mock
import zipfile

import numpy

SEEDS = [0, 1, 42, 1234]

SHAPE = {"groups": 5, "prompts-per-group": 6, "prefix-len": 30, "question-len": 12, "output-len": 9}

SGLANG = [
    {},
    {"shuffle": False},
    {"range-ratio": 0.25},
    {"turns": 3},
    {"turns": 3, "shuffle": False, "range-ratio": 0.5},
    {"zipf": 1.2},
    {"zipf": 0.7, "turns": 2, "range-ratio": 0.1},
    {"as": "tokens", "range-ratio": 0.5},
    {"groups": 1, "prompts-per-group": 1, "prefix-len": 1, "question-len": 1, "output-len": 1},
]

VLLM = [
    {},
    {"shuffle": False},
    {"prefix-len": 1, "question-len": 700},
    {"groups": 30, "prefix-len": 3},
    {"groups": 7, "question-len": 1},
]

# What `--num-prompts` is for vLLM; SGLang's number follows from the groups.
NUM_PROMPTS = 32


class Pairs:
    """Printable ASCII, two characters at a time where there is an id for the pair."""

    SINGLE, TRIPLE, START, END = 95, 9000, 9120, 9121
    vocab_size = START

    def get_vocab(self):
        return {f"token {i}": i for i in range(self.END + 1)}

    def text(self, i):
        if i == 7:
            return "<seven>"
        if i < self.SINGLE:
            return chr(32 + i)
        if i < self.TRIPLE:
            first, second = divmod(i - self.SINGLE, self.SINGLE)
            return chr(32 + first) + chr(32 + second)
        if i < self.START:
            return chr(32 + i % self.SINGLE) * 3
        return {self.START: "<s>", self.END: "</s>"}[i]

    def decode(self, ids):
        return "".join(self.text(i) for i in ids)

    def encode(self, text, add_special_tokens=True):
        letters = [ord(c) - 32 if " " <= c <= "~" else ord("?") - 32 for c in text]
        ids = [self.START] if add_special_tokens else []
        at = 0
        while at < len(letters):
            pair = self.TRIPLE
            if at + 1 < len(letters):
                pair = self.SINGLE + self.SINGLE * letters[at] + letters[at + 1]
            if pair < self.TRIPLE:
                ids.append(pair)
                at += 2
            else:
                ids.append(letters[at])
                at += 1
        return ids


class FromFile:
    """A `tokenizer.json`, as `transformers` presents it to the tools."""

    def __init__(self, folder):
        import tokenizers

        self.tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.vocab_size = self.tokenizer.get_vocab_size(with_added_tokens=False)

    def get_vocab(self):
        return self.tokenizer.get_vocab(with_added_tokens=True)

    def decode(self, ids):
        return self.tokenizer.decode(ids, skip_special_tokens=False)

    def encode(self, text, add_special_tokens=True):
        return self.tokenizer.encode(text, add_special_tokens=add_special_tokens).ids


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Replaces all modules except Python's own, the modules that draw and decode, and the wheels' modules."""

    PRESENT = {*sys.stdlib_module_names, "numpy", "tokenizers"}

    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in self.PRESENT or name.startswith(("sglang.benchmark.", "vllm.benchmarks.")):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__getattr__ = lambda name: unittest.mock.MagicMock(name=f"{spec.name}.{name}")
        return module

    def exec_module(self, module):
        module.__path__ = []


def modules(wheels, tool, folder):
    """The wheel of a tool: its version, and its modules below `folder` made importable."""
    [wheel] = wheels.glob(f"{tool}-*.whl")
    root = pathlib.Path(tempfile.mkdtemp()) / tool
    with zipfile.ZipFile(wheel) as archive:
        wanted = [name for name in archive.namelist() if name.startswith(f"{folder}/")]
        archive.extractall(root, wanted)
    # Packages without their own `__init__`, which would import all of the tool.
    for depth in range(1, folder.count("/") + 2):
        name = ".".join(folder.split("/")[:depth])
        package = types.ModuleType(name)
        package.__path__ = [str(root / name.replace(".", "/"))]
        package.__getattr__ = lambda attribute: unittest.mock.MagicMock(name=attribute)
        sys.modules[name] = package
    return re.match(rf"{tool}-([^-]+)-", wheel.name).group(1)


def sglang(generate, tokenizer, config, seed):
    """As `sglang.benchmark.serving` calls it: both global generators are seeded first."""
    random.seed(seed)
    numpy.random.seed(seed)
    rows = generate(
        num_groups=config["groups"],
        prompts_per_group=config["prompts-per-group"],
        system_prompt_len=config["prefix-len"],
        question_len=config["question-len"],
        output_len=config["output-len"],
        range_ratio=config.get("range-ratio", 1.0),
        tokenizer=tokenizer,
        seed=seed,
        # Besides a key that is not used here, this turns off its cache, which would return the rows of another run.
        send_routing_key=True,
        num_turns=config.get("turns", 1),
        ordered=not config.get("shuffle", True),
        group_distribution="zipf" if "zipf" in config else "uniform",
        zipf_alpha=config.get("zipf"),
        input_ids=config.get("as") == "tokens",
    )
    for row in rows:
        whole = config.get("turns", 1) == 1
        yield [row.prompt] if whole else row.prompt, row.prompt_len, row.output_len


def vllm(dataset, tokenizer, config, seed):
    made = dataset(random_seed=seed, disable_shuffle=not config.get("shuffle", True))
    rows = made.sample(
        tokenizer=tokenizer,
        num_requests=NUM_PROMPTS,
        prefix_len=config["prefix-len"],
        suffix_len=config["question-len"],
        num_prefixes=config["groups"],
        output_len=config["output-len"],
    )
    for row in rows:
        yield [row.prompt], len(tokenizer.encode(row.prompt)), row.expected_output_len


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheels", type=pathlib.Path, help="folder with the wheels of both tools")
    parser.add_argument("--tokenizer", type=pathlib.Path, help="folder with a tokenizer.json")
    parser.add_argument("--write", type=pathlib.Path, help="folder for the lines that each digest is of")
    args = parser.parse_args()
    tokenizer = FromFile(args.tokenizer) if args.tokenizer else Pairs()

    sys.meta_path.insert(0, Absent())
    # A progress bar, through which SGLang's loop runs.
    importlib.import_module("tqdm.asyncio").tqdm = lambda iterable, **_: iterable
    versions = {
        "sglang": modules(args.wheels, "sglang", "sglang/benchmark/datasets"),
        "vllm": modules(args.wheels, "vllm", "vllm/benchmarks/datasets"),
    }
    generate = importlib.import_module(
        "sglang.benchmark.datasets.generated_shared_prefix"
    ).sample_generated_shared_prefix_requests
    dataset = importlib.import_module("vllm.benchmarks.datasets.datasets").PrefixRepetitionRandomDataset

    goldens = []
    for tool, cases in (("sglang", SGLANG), ("vllm", VLLM)):
        for case in cases:
            shape = {key: value for key, value in SHAPE.items() if tool == "sglang" or key != "prompts-per-group"}
            config = {"algorithm": tool, **shape, **case}
            for seed in SEEDS:
                made = {"sglang": lambda: sglang(generate, tokenizer, config, seed),
                        "vllm": lambda: vllm(dataset, tokenizer, config, seed)}[tool]
                with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                    rows = list(made())
                lines = [json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows]
                digest = hashlib.sha256("".join(lines).encode()).hexdigest()
                goldens.append({"config": config, "seed": seed, "conversations": len(lines), "sha256": digest})
                if args.write:
                    args.write.mkdir(exist_ok=True)
                    (args.write / f"{len(goldens) - 1:03}.jsonl").write_text("".join(lines))

    name = args.tokenizer.name if args.tokenizer else "pairs"
    print("{")
    print(f' "made-by": "sglang {versions["sglang"]}, vllm {versions["vllm"]}, NumPy {numpy.__version__}",')
    print(f' "tokenizer": "{name}",')
    print(f' "num-prompts": {NUM_PROMPTS},')
    print(' "goldens": [')
    print(",\n".join("  " + json.dumps(golden) for golden in goldens))
    print(" ]\n}")


if __name__ == "__main__":
    main()
