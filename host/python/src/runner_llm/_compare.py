"""Comparisons of runs."""

from __future__ import annotations

import difflib
import json
import os
from typing import Any, Optional, Sequence, Union

from runner_llm._arguments import flag_words
from runner_llm._errors import failure
from runner_llm._program import execute
from runner_llm._run import Run, table
from runner_llm.types import comparison as types

#: A side of a comparison: a run, a folder, a file, or `published:…`.
Side = Union[Run, str, "os.PathLike[str]"]

_THRESHOLD = 6


class Comparison:
    """A comparison with the first side, the baseline.

    Attributes:
        document: The whole comparison, as `runner schema comparison` describes it.
        json: The same as parsed JSON.
    """

    def __init__(self, json: dict[str, Any]) -> None:
        self.json = json
        self.document: types.Compared = types.Compared.from_json(json)

    @property
    def sides(self) -> list[types.SideFacts]:
        """The sides, the baseline first."""
        return self.document.sides

    @property
    def pairs(self) -> list[types.Pair]:
        """Each further side against the baseline, with a row for each figure."""
        return self.document.pairs

    @property
    def conditions(self) -> list[types.Outcome]:
        """The conditions of `fail_if`, with their outcomes."""
        return self.document.conditions

    @property
    def fails(self) -> bool:
        """True if a condition of `fail_if` holds."""
        return any(outcome.fails for outcome in self.conditions)

    def figure(self, name: str, side: Optional[str] = None) -> types.Row:
        """The row of a figure, such as `ttft.p99`, for the first further side or the named side.

        Raises:
            KeyError: If the comparison has no such side or figure.
        """
        pairs = [pair for pair in self.pairs if side in (None, pair.side)]
        if not pairs:
            raise KeyError(f"{side}; the sides are {', '.join(pair.side for pair in self.pairs)}")
        rows = {row.figure: row for row in pairs[0].figures}
        if name not in rows:
            near = difflib.get_close_matches(name, rows) or rows
            raise KeyError(f"{name}; did you mean {' or '.join(near)}?")
        return rows[name]

    def __repr__(self) -> str:
        names = " with ".join(", ".join(side.sources) for side in self.sides)
        return f"<runner_llm.Comparison of {names}>"

    def _repr_html_(self) -> str:
        """Tables for notebooks: each figure of both sides, its difference with an interval, and its
        judgement."""
        names = {side.name: f"{side.name}: {', '.join(side.sources)}" for side in self.sides}
        base = next(iter(names.values()), "baseline")
        return "".join(
            table(
                f"{names.get(pair.side, pair.side)}, against {base}",
                [_cells(row) for row in pair.figures],
                ("Figure", base, names.get(pair.side, pair.side), "Difference", "95 % interval"),
            )
            for pair in self.pairs
        )


def _cells(row: types.Row) -> tuple[str, ...]:
    def number(value: Optional[float], sign: str = "") -> str:
        return "absent" if value is None else f"{value:{sign}.4g}"

    percent = "" if row.percent is None else f" ({row.percent:+.2f} %)"
    ends = row.interval
    return (
        f"{row.figure} ({row.unit})" if row.unit else row.figure,
        number(row.baseline),
        number(row.value),
        number(row.difference, "+") + percent,
        f"{number(ends.low, '+')} to {number(ends.high, '+')}" if ends else "none",
        row.judgement or "",
    )


def compare(
    *runs: Side, fail_if: Union[str, Sequence[str], None] = None, **flags: Any
) -> Comparison:
    """Compares runs, other tools' results or published results with the first.

        runner_llm.compare(before, after, fail_if="ttft.p99 +5%")

    Args:
        runs: The baseline, then the sides to compare with it.
        fail_if: Conditions that raise `ThresholdNotMet` if they hold.
        flags: Flags of `runner compare`, with `_` for `-`: `all=True`, `allow=["load"]`.

    Raises:
        ThresholdNotMet: If a condition of `fail_if` holds; its `comparison` has the figures.
        InputError: If a side cannot be read, or the sides are not comparable.
    """
    own = {"format": "the result, or Comparison.json"}
    words = flag_words({**flags, "fail_if": fail_if}, own=own)
    sides = [str(side.path) if isinstance(side, Run) else os.fspath(side) for side in runs]
    ended = execute(
        ["compare", *words, "--format=json", "--", *sides], allowed=(0, _THRESHOLD)
    )
    comparison = Comparison(json.loads(ended.stdout))
    if ended.returncode == _THRESHOLD:
        raise failure(_THRESHOLD, ended.stderr, ended.args, comparison=comparison)
    return comparison
