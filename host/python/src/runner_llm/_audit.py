"""Audits of other tools' results."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Sequence, Union

from runner_llm._errors import failure
from runner_llm._program import execute
from runner_llm._run import table
from runner_llm.types import audit as types

_INVALID = 7

_Path = Union[str, "os.PathLike[str]"]


class Audit:
    """The result of an audit.

    Attributes:
        document: The whole result, as `runner schema audit` describes it.
        json: The same as parsed JSON.
    """

    def __init__(self, json: dict[str, Any]) -> None:
        self.json = json
        self.document: types.Report = types.Report.from_json(json)

    @property
    def results(self) -> list[types.Audited]:
        """Each result with its verdict and its findings."""
        return self.document.results

    @property
    def totals(self) -> types.Totals:
        """The numbers of valid, suspect and invalid results."""
        return self.document.totals

    @property
    def verdict(self) -> types.Verdict:
        """The worst verdict of all results."""
        if self.totals.invalid:
            return "invalid"
        return "suspect" if self.totals.suspect else "valid"

    def __repr__(self) -> str:
        return f"<runner_llm.Audit of {len(self.results)} results: {self.verdict}>"

    def _repr_html_(self) -> str:
        """A table for notebooks: each result with its verdict and findings."""
        rows: list[tuple[str, str]] = []
        for result in self.results:
            source = result.claim.source
            place = source.file if source.line is None else f"{source.file}:{source.line}"
            rows.append((place, result.verdict))
            rows += [(finding.severity, finding.seen) for finding in result.findings]
        return table("Audit", rows)


def audit(paths: Union[_Path, Sequence[_Path]], *, strict: bool = False) -> Audit:
    """Checks other tools' results for figures that no honest measurement can produce.

    Args:
        paths: Files with results, or `published:PATTERN`.
        strict: Raise `InvalidRun` if a result is invalid.

    Raises:
        InputError: If a file cannot be read, or holds no result.
        InvalidRun: With `strict`, if a result is invalid; its `audit` has the findings.
    """
    several = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    files = [os.fspath(path) for path in several]
    if "-" in files:
        raise ValueError(f"no file `-`: this Python's stdin is not read; name {Path('./-')!s}")
    words = ["audit", "--format=json", *(["--strict"] if strict else []), "--", *files]
    ended = execute(words, allowed=(0, _INVALID))
    found = Audit(json.loads(ended.stdout))
    if strict and ended.returncode == _INVALID:
        raise failure(_INVALID, ended.stderr, ended.args, audit=found)
    return found
