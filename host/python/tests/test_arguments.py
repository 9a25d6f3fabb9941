"""Keywords become words of the command line, and secrets never do."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from runner_llm import _arguments


def words(**flags: Any) -> list[str]:
    return _arguments.run_call((), None, None, flags).words


def test_flags() -> None:
    assert words(num_prompts=5, ignore_eos=True, stream=False, model=None) == [
        "--num-prompts=5",
        "--ignore-eos",
    ]
    assert words(request_rate=math.inf, output_dir=Path("a b")) == [
        "--request-rate=inf",
        "--output-dir=a b",
    ]
    assert words(threshold=["ttft.p99 <= 1s", "e2e.mean <= 2s"], metadata={"a": 1}) == [
        "--threshold=ttft.p99 <= 1s",
        "--threshold=e2e.mean <= 2s",
        "--metadata=a=1",
    ]
    with pytest.raises(TypeError, match=r"request_rate= takes .*, not object"):
        words(request_rate=object())
    with pytest.raises(ValueError, match="no flag is named `--a=b`"):
        words(**{"a=b": 1})
    with pytest.raises(ValueError, match="use strict=True"):
        words(strict=True)


def test_keys_are_toml() -> None:
    given = {"backend.config.route": "chat", "load.requests": 5, "a": None, "b": [1, {"c": True}]}
    assert _arguments.run_call((), given, None, {}).words == [
        '--set=backend.config.route="chat"',
        "--set=load.requests=5",
        "--set=b=[1, {c = true}]",
    ]


def test_scenarios() -> None:
    call = _arguments.run_call(("a.toml", Path("b")), None, None, {"goodput": ["ttft:2"]})
    assert (call.words, call.stdin) == (["a.toml", "b", "--goodput=ttft:2"], None)
    text = "name = 'a'\n"
    call = _arguments.run_call((text,), None, None, {})
    assert (call.words, call.stdin) == (["-"], text)
    with pytest.raises(ValueError, match="one scenario of a command"):
        _arguments.run_call((text, {}), None, None, {})
    with pytest.raises(ValueError, match="no scenario `--help`"):
        _arguments.run_call(("--help",), None, None, {})


def test_a_dict_becomes_toml() -> None:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.11 reads TOML")
    scenario: dict[str, Any] = {
        "name": 'quotes " and \\, lines\n\tand \x7f, \x00, ✓ and 𝄞',
        "target": {"base-url": "http://[::1]:8000", "headers": {"X-Odd key": "a"}},
        "load": {"rate": 1e22, "ramp": -0.5, "requests": 10**12, "arrival": [[1, 2], []]},
        "path": Path("/a/b"),
        "absent": None,
        "request": {"stream": False, "absent": None},
    }
    read = tomllib.loads(_arguments.document(scenario))
    del scenario["absent"], scenario["request"]["absent"]
    assert read == {**scenario, "path": "/a/b"}
    with pytest.raises(TypeError, match=r"`load.rate`: .* not complex"):
        _arguments.document({"load": {"rate": 1j}})


@pytest.mark.parametrize(
    "given",
    [
        {"set": {"target.headers.Authorization": "secret"}},
        {"set": {"target.headers": {"Authorization": "secret"}}},
        {"set": {"request.extra-body.key": "secret"}},
        {"flags": {"header": ["A: secret", "B: secret"]}},
        {"flags": {"api_key_env": "NAME"}, "api_key": "secret"},
    ],
)
def test_a_secret_that_cannot_be_passed_is_refused(given: dict[str, Any]) -> None:
    flags = given.get("flags", {})
    with pytest.raises(ValueError) as caught:
        _arguments.run_call((), given.get("set"), given.get("api_key"), flags)
    assert "secret" not in str(caught.value).replace("a secret", "")


def test_secrets_go_through_the_environment() -> None:
    flags = {"header": {"X-Key": "secret"}, "extra_body": '{"key": "secret"}'}
    call = _arguments.run_call((), None, "secret", flags)
    assert not [word for word in call.words if "secret" in word]
    assert call.secrets == {
        "RUNNER_HEADER": "X-Key=secret",
        "RUNNER_EXTRA_BODY": '{"key": "secret"}',
        "RUNNER_LLM_API_KEY": "secret",
    }
