"""Turns scenarios and keyword arguments into the program's input: words, stdin, variables.

Every user of a machine can see command lines, and a run stores its command line. So secrets go
through the environment or stdin.
"""

from __future__ import annotations

import json
import math
import os
import re
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Sequence, Union

#: A scenario: a path, a built-in name, TOML text, or a dict of its keys.
Scenario = Union[str, "os.PathLike[str]", Mapping[str, Any]]

#: The variable of this module that holds the API key of a run.
_KEY = "RUNNER_LLM_API_KEY"

#: Flags whose values may be secrets, with the variables that stand for them.
_SECRET = {"header": "RUNNER_HEADER", "extra-body": "RUNNER_EXTRA_BODY"}

#: Keys of scenarios whose values may be secrets.
_SECRET_KEYS = ("target.headers", "request.extra-body")

#: Flags that belong to this module, with their replacements.
_OWN = {
    "progress-file": "progress= or start()",
    "progress-every": "interval=",
    "no-progress": "progress=None",
    "dashboard": "progress=",
    "strict": "strict=True",
    "allow-invalid": "strict=False, which is the default",
    "json": "Run.summary",
    "help": "help(runner_llm.run), or `runner run --help` for the flags",
    "version": "`runner --version`",
}


@dataclass
class Call:
    """The arguments of a run, its stdin, and the variables with its secrets."""

    words: list[str] = field(default_factory=list)
    stdin: Optional[str] = None
    secrets: dict[str, str] = field(default_factory=dict)


def run_call(
    scenarios: Sequence[Scenario],
    set: Optional[Mapping[str, Any]],
    api_key: Optional[str],
    flags: Mapping[str, Any],
) -> Call:
    """The call for a run.

    Raises:
        ValueError: If a secret would get into the command line, or a value cannot be written.
        TypeError: If a value is of a type that no flag or key takes.
    """
    call = Call()
    # Flags that take several words would take the scenarios too, so these come first.
    for scenario in scenarios:
        _add_scenario(call, scenario)
    for key, value in (set or {}).items():
        if any(key == secret or key.startswith(f"{secret}.") for secret in _SECRET_KEYS):
            raise ValueError(
                f"set[{key!r}] may hold a secret, and other users can see command lines: put it "
                "into a scenario given as a dict, which the program reads from stdin"
            )
        if value is not None:
            call.words.append(f"--set={key}={toml(value, key)}")
    for name, value in flags.items():
        _add_flag(call, name.replace("_", "-"), value, _OWN)
    if api_key is not None:
        if "api_key_env" in flags:
            raise ValueError("give api_key= or api_key_env=, not both")
        call.secrets[_KEY] = api_key
        call.words.append(f"--api-key-env={_KEY}")
    return call


def flag_words(flags: Mapping[str, Any], own: Mapping[str, str]) -> list[str]:
    """The words for flags of another command. `own` has this module's flags and replacements."""
    call = Call()
    for name, value in flags.items():
        _add_flag(call, name.replace("_", "-"), value, own)
    return call.words


def _add_scenario(call: Call, scenario: Scenario) -> None:
    if isinstance(scenario, Mapping):
        text = document(scenario)
    elif isinstance(scenario, str) and "\n" in scenario:
        text = scenario
    else:
        path = os.fspath(scenario)
        if path.startswith("-"):
            raise ValueError(f"no scenario `{path}`: give a path, a built-in name, TOML or a dict")
        call.words.append(path)
        return
    if call.stdin is not None:
        raise ValueError(
            "one scenario of a command may be a dict or TOML text; write the others to files"
        )
    call.stdin = text
    call.words.append("-")


def _add_flag(call: Call, name: str, value: Any, own: Mapping[str, str]) -> None:
    if name in own:
        raise ValueError(f"{name.replace('-', '_')}= belongs to runner_llm: use {own[name]}")
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise ValueError(f"no flag is named `--{name}`")
    if value is None or value is False:
        return
    if value is True:
        call.words.append(f"--{name}")
        return
    values = [_word(item, name) for item in _several(value)]
    if name in _SECRET:
        if len(values) > 1:
            raise ValueError(
                f"{name.replace('-', '_')}= takes one value, because it may hold a secret; put "
                "several into a scenario given as a dict, which the program reads from stdin"
            )
        call.secrets.update((_SECRET[name], one) for one in values)
        return
    call.words.extend(f"--{name}={one}" for one in values)


def _several(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [f"{key}={_word(item, str(key))}" for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return list(value)
    return [value]


def _word(value: Any, name: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int)):
        return str(value)
    if isinstance(value, float):
        return "inf" if value == math.inf else repr(value)
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    raise TypeError(
        f"{name.replace('-', '_')}= takes text, numbers, paths, and lists or dicts of them, "
        f"not {type(value).__name__}"
    )


def document(scenario: Mapping[str, Any]) -> str:
    """A scenario as TOML. A key whose value is `None` is left out."""
    lines = (
        f"{_key(key)} = {toml(value, str(key))}\n"
        for key, value in scenario.items()
        if value is not None
    )
    return "".join(lines)


def toml(value: Any, place: str) -> str:
    """A value as TOML, on one line.

    Raises:
        TypeError: If a scenario takes no value of this type.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, os.PathLike):
        return _quoted(str(os.fspath(value)))
    if isinstance(value, Mapping):
        items = (
            f"{_key(key)} = {toml(item, f'{place}.{key}')}"
            for key, item in value.items()
            if item is not None
        )
        return "{" + ", ".join(items) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml(item, f"{place}[{at}]") for at, item in enumerate(value)) + "]"
    raise TypeError(
        f"`{place}`: a scenario takes text, numbers, booleans, paths, lists and dicts, "
        f"not {type(value).__name__}"
    )


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a key of a scenario is text, not {key!r}")
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _quoted(key)


def _quoted(text: str) -> str:
    # JSON's escapes equal TOML's, except DEL, which TOML wants escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
