"""The types match the program's schemas."""

from __future__ import annotations

import json
import math
from pathlib import Path

import generate
import pytest
import runner_llm
from runner_llm.types import audit, comparison, summary


@pytest.mark.parametrize("name", list(generate.NAMES))
def test_the_modules_match_the_schemas(name: str) -> None:
    file = generate.TYPES / f"{name}.py"
    expected = generate.render(name, generate.schema(name))
    assert file.read_text() == expected, f"{file} is old: run tools/generate.py"


def test_an_infinite_figure(run: runner_llm.Run) -> None:
    document = json.loads(json.dumps(run.summary_json["metrics"]["ttft"]))
    document["max"] = "infinite"
    document["percentiles"]["p99"] = "infinite"
    del document["mean"]
    read = summary.Distribution.from_json(document)
    assert read.max == math.inf == read.percentiles["p99"]
    assert read.mean is None and read.min == document["min"]


def test_every_field_of_a_summary_is_read(run: runner_llm.Run) -> None:
    def check(value: object, read: object) -> int:
        if isinstance(value, dict):
            count = 0
            for key, item in value.items():
                name = key.replace("-", "_")
                own = (
                    read[key]
                    if isinstance(read, dict)
                    else getattr(read, name, None) or getattr(read, f"{name}_", None)
                )
                if own is None and hasattr(read, name):
                    own = getattr(read, name)
                count += check(item, own)
            return count
        if isinstance(value, list):
            assert isinstance(read, list) and len(value) == len(read)
            return sum(check(item, own) for item, own in zip(value, read))
        assert value == read
        return 1

    assert check(dict(run.summary_json), run.summary) > 500


def test_a_form_that_is_not_known_is_refused() -> None:
    schema = {"title": "A", "type": "object", "properties": {"a": {"not": {}}}}
    with pytest.raises(generate.Unknown):
        generate.render("summary", schema)


def test_forms_of_one_object() -> None:
    blocks = {"by": "none"}
    method = comparison.Method.from_json(blocks)
    assert (method.by, method.blocks) == ("none", None)
    assert audit.Totals.from_json({"valid": 1, "suspect": 2, "invalid": 3}).suspect == 2
    assert Path(generate.TYPES).is_dir()
