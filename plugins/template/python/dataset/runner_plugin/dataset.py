"""Support for datasets: a base class, samples, and reading the files that the scenario names."""

import itertools
import json
from dataclasses import fields as members

from componentize_py_types import Err
from runner_plugin import configured, invalid_config, invalid_input, well_formed
from wit_world.exports import dataset as api
from wit_world.exports.dataset import Treatment
from wit_world.imports import files, tokenizer, types
from wit_world.imports.types import Message, Part_Answer, Part_Text, Prompt_Continuation, Prompt_Messages, Prompt_Text
from wit_world.imports.types import Prompt_Tokens, Role, Turn


class Dataset:
    """A sequence of samples. Derive a class `Generator` from it, set `Config`, and write `samples`."""

    Config = None
    """The dataclass of the user's settings; an instance is in `self.config`."""

    def __init__(self, config, seed, count, sessions):
        """`seed` seeds all random choices; `count` is the number of samples that the run will measure, `sessions` the
        number of sessions, or None."""
        self.config = config
        self.seed = seed
        self.count = count
        self.sessions = sessions
        self._remarks = {}
        self._rest = self.samples()

    def samples(self):
        """A generator of all samples, in their order. The same configuration, seed, files and tokenizer give the
        same samples, everywhere: draw random numbers from `random.Random(self.seed)` and from nothing else."""
        raise NotImplementedError

    def remark(self, what, reason, example=None):
        """Counts a treatment of the input, for the result of a run: `what` is `Treatment.DROPPED`, `TRUNCATED`,
        `REPAIRED` or `REPEATED`, `reason` is the reason, and `example` names the case."""
        known = self._remarks.setdefault((what, reason), api.Remark(what, well_formed(reason), 0, example and well_formed(example)))
        known.count += 1

    # Called by the host.

    @classmethod
    def open(cls, config, seed, amount):
        count = amount.value if isinstance(amount, api.Amount_Samples) else None
        sessions = amount.value if isinstance(amount, api.Amount_Sessions) else None
        return cls(configured(cls.Config, config), seed, count, sessions)

    def next(self, limit):
        return [sample for _, sample in zip(range(limit), self._rest)]

    def spare(self, limit):
        """Samples for requests that are not measured: the first samples without dependencies, which `next` never gives
        again. The rest of a session that begins with such a sample is left out."""
        alone = []
        for sample in self._rest:
            if sample.after:
                continue
            if len(alone) == limit:
                self._rest = itertools.chain([sample], self._rest)
                break
            alone.append(sample)
        return alone

    def remarks(self):
        return list(self._remarks.values())


def sample(id, prompt, **fields):
    """A sample: its id, unique within a run, and its prompt: a text, or one of the `Prompt_…` classes. Further fields
    are `types.Sample`'s. `reference` is a plain value, such as 8, "8" or ["eight", "8"]; `parameters` is a dict, or the
    text of a JSON object."""
    absent = dict.fromkeys(field.name for field in members(types.Sample))
    prompt = Prompt_Text(well_formed(prompt)) if isinstance(prompt, str) else prompt
    if fields.get("reference") is not None:
        fields["reference"] = json.dumps(fields["reference"])
    if isinstance(fields.get("parameters"), dict):
        fields["parameters"] = json.dumps(fields["parameters"])
    for name in ("class_", "adapter"):
        if fields.get(name) is not None:
            fields[name] = well_formed(fields[name])
    return types.Sample(**(absent | {"id": well_formed(id), "prompt": prompt, "after": []} | fields))


def following(id, parent, delay, messages, **fields):
    """The next turn of a conversation, due this many nanoseconds after the end of the reply to the sample `parent`.
    The host puts the history before its messages. The turns of a session follow their first sample directly."""
    prompt = Prompt_Continuation(types.Continuation(parent, messages))
    return sample(id, prompt, **({"after": [types.Dependency(parent, types.Point.END, delay)]} | fields))


def message(role, text):
    """A message of one text."""
    return Message(role, [Part_Text(well_formed(text))], None)


def lines(name):
    """The lines of the file that the scenario calls `name`, as bytes without their ends, with their numbers from 1.
    The file is read in pieces, so it may be larger than the plugin's memory; a line may not."""
    file = files.File.open(name)
    if file is None:
        raise invalid_config(f"this dataset reads a file; name it in the scenario: [dataset.files] {name} = \"PATH\"")
    size = file.size()
    offset = 0
    number = 0
    rest = b""
    while offset < size:
        try:
            piece = file.read(offset, 1 << 20)
        except Err as error:
            raise invalid_input(f"file `{name}`: {error.value}") from None
        offset += len(piece)
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            number += 1
            yield number, line.removesuffix(b"\r")
        if not piece:
            break
    if rest:
        yield number + 1, rest


def text(line, name, number):
    """A line as text."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise invalid_input(f"file `{name}`, line {number}: byte {error.start + 1} is not UTF-8") from None


__all__ = [
    "Dataset",
    "Message",
    "Part_Answer",
    "Prompt_Messages",
    "Prompt_Text",
    "Prompt_Tokens",
    "Role",
    "Treatment",
    "Turn",
    "following",
    "lines",
    "message",
    "sample",
    "text",
    "tokenizer",
]
