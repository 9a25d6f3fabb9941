"""Runs on disk: the plan, the results and the reports of a run."""

from __future__ import annotations

import html
import json
import os
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence, Union

from runner_llm._arguments import flag_words
from runner_llm._program import output
from runner_llm._table import Table
from runner_llm.types.summary import Finding, Summary, Verdict

#: A file that every run has from its beginning.
_PLAN = "plan.json"
_SUMMARY = "summary.json"

#: The figures in a notebook, with their names.
_HEADLINES = (
    ("ttft", "Time to first token"),
    ("tpot", "Time per output token"),
    ("itl", "Inter-token latency"),
    ("e2e", "End-to-end latency"),
)


class Run:
    """A run in its folder. Properties read their file at the first use.

    Attributes:
        path: The run's folder.
    """

    path: Path

    def __init__(self, path: Union[str, os.PathLike[str]]) -> None:
        folder = Path(path).absolute()
        if not (folder / _PLAN).is_file():
            raise FileNotFoundError(
                f"`{folder}` is not the folder of a run: it has no {_PLAN}; name the folder that "
                "the program made in the output folder"
            )
        self.path = folder
        self._summary: Optional[Mapping[str, Any]] = None
        self._tables: dict[str, Table] = {}

    @classmethod
    def open(cls, path: Union[str, os.PathLike[str]]) -> Run:
        """Opens the run in a folder.

        Raises:
            FileNotFoundError: If there is no run in it.
        """
        return cls(path)

    @property
    def name(self) -> str:
        """The name of the run's scenario."""
        name: str = self.plan["name"]
        return name

    @property
    def plan(self) -> dict[str, Any]:
        """The plan that the run followed: parsed `plan.json`."""
        plan: dict[str, Any] = json.loads((self.path / _PLAN).read_text(encoding="utf-8"))
        return plan

    @property
    def summary(self) -> Summary:
        """The run's figures. Latencies are in milliseconds, as their `unit` says.

        Raises:
            RunnerError: If the run ended before it had a summary, and its records cannot be read.
            ValueError: If another version of the program wrote it, with other keys.
        """
        document = self.summary_json
        try:
            return Summary.from_json(document)
        except KeyError as error:
            raise ValueError(
                f"the summary of `{self.path}` has no key {error}, so another version of the program "
                "wrote it; use that version's module, or read summary_json"
            ) from error

    @property
    def summary_json(self) -> Mapping[str, Any]:
        """The summary as parsed JSON, with all keys that the program wrote."""
        if self._summary is None:
            try:
                text = (self.path / _SUMMARY).read_text(encoding="utf-8")
            except FileNotFoundError:
                # A killed run has no summary, which is a function of the other files.
                text = self.report("json")
            self._summary = json.loads(text)
        assert self._summary is not None
        return self._summary

    @property
    def verdict(self) -> Verdict:
        """The verdict on the measurement: `valid`, `suspect` or `invalid`."""
        return self.summary.verdict

    @property
    def findings(self) -> list[Finding]:
        """The reasons to doubt the measurement, with their remedies."""
        return self.summary.findings

    @property
    def is_interrupted(self) -> bool:
        """True if the run was stopped before it completed its plan."""
        return self.summary.run.interrupted

    @property
    def requests(self) -> Table:
        """A row for each request. Instants are nanoseconds since the run's origin."""
        return self._table("requests")

    @property
    def events(self) -> Table:
        """A row for each event of an answer."""
        return self._table("events")

    @property
    def series(self) -> Table:
        """A row for each value over time: throughput, requests in flight, devices."""
        return self._table("series")

    @property
    def figures(self) -> Table:
        """A row for each figure of the summary, with its unit and its interval."""
        return self._table("summary")

    def _table(self, name: Any) -> Table:
        if name not in self._tables:
            self._tables[name] = Table(self.path, name)
        return self._tables[name]

    def report(self, format: str = "text", **flags: Any) -> str:
        """The run in a format of `runner report` that is text, such as `markdown` or `html`.

        Flags of the command are keywords: `style="vllm"`, `details=True`.

        Raises:
            RunnerError: If the run cannot be read, or the format is not known.
        """
        words = flag_words(flags, own={"output": "save_report()"})
        # A variable may name another place.
        words.append("--output=-")
        return output(["report", str(self.path), f"--format={format}", *words])

    def save_report(
        self, file: Union[str, os.PathLike[str]], format: Optional[str] = None, **flags: Any
    ) -> None:
        """Writes a report to a file, complete or not at all; charts as `svg` or `png` too.

        Without a format, the file's ending decides: `.html`, `.md`, `.json`,
        `.jsonl`, `.csv`, `.svg`, `.png`, and text otherwise.

        Raises:
            RunnerError: If the run cannot be read, or the file cannot be written.
        """
        path = Path(file)
        ending = path.suffix[1:].lower()
        endings = ("html", "json", "jsonl", "csv", "svg", "png")
        known = {"md": "markdown", **{name: name for name in endings}}
        words = flag_words({"output": path.absolute(), **flags}, own={})
        chosen = format or known.get(ending, "text")
        output(["report", str(self.path), f"--format={chosen}", *words])

    def page(self, height: int = 800) -> Page:
        """The report's page with its charts, which a notebook shows in a frame.

        `height` is the height of the frame, in pixels.
        """
        return Page(self.report("html"), height)

    def __repr__(self) -> str:
        return f"<runner_llm.Run {str(self.path)!r}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and self.path == other.path

    def __hash__(self) -> int:
        return hash(self.path)

    def _repr_html_(self) -> str:
        """A short table for notebooks: the verdict, the findings and the headline figures."""
        summary = self.summary
        rows: list[tuple[str, str]] = [
            ("Verdict", summary.verdict),
            (
                "Requests",
                f"{summary.requests.successful} answered, {summary.requests.failed} failed",
            ),
        ]
        rate = summary.throughput.output_tokens_per_s
        if rate is not None:
            rows.append(("Output tokens per second", f"{rate:.2f}"))
        for metric, label in _HEADLINES:
            if metric in summary.metrics:
                found = summary.metrics[metric]
                high = found.percentiles.get("p99")
                words = f"median {found.median:.2f} {found.unit}"
                ends = found.confidence and found.confidence.median
                if ends and ends.low is not None and ends.high is not None:
                    words += f" (95 % interval {ends.low:.2f} to {ends.high:.2f})"
                rows.append((label, words if high is None else f"{words}, P99 {high:.2f}"))
        rows += [(finding.severity, finding.seen) for finding in summary.findings]
        return table(self.name, rows)


class Page:
    """A page of HTML. A notebook shows it in an isolated frame.

    Attributes:
        html: The page.
        height: The height of the frame, in pixels.
    """

    def __init__(self, page: str, height: int) -> None:
        self.html = page
        self.height = height

    def _repr_html_(self) -> str:
        # Texts of servers are in the page. The frame's scripts draw the charts, but without
        # `allow-same-origin` they reach nothing outside it.
        source = html.escape(self.html, quote=True)
        return (
            f'<iframe sandbox="allow-scripts" srcdoc="{source}" width="100%" '
            f'height="{int(self.height)}" style="border: 0" title="report"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<runner_llm.Page of {len(self.html)} characters>"


#: Colours of good, bad and doubtful news, which read on light and on dark.
COLOURS = {
    "better": "#2e8b57",
    "valid": "#2e8b57",
    "worse": "#d1495b",
    "invalid": "#d1495b",
    "suspect": "#c77d00",
}


def table(caption: str, rows: Sequence[Sequence[str]], head: Sequence[str] = ()) -> str:
    """A table of HTML, whose texts are escaped. A word of `COLOURS` has its colour."""

    def cell(text: str, tag: str) -> str:
        colour = f"; color: {COLOURS[text]}; font-weight: bold" if text in COLOURS else ""
        return f'<{tag} style="text-align: left{colour}">{html.escape(text)}</{tag}>'

    top = "".join(cell(text, "th") for text in head)
    lines = "".join(
        "<tr>" + cell(row[0], "th") + "".join(cell(text, "td") for text in row[1:]) + "</tr>"
        for row in rows
    )
    top = f"<tr>{top}</tr>" if top else ""
    return f"<table><caption>{html.escape(caption)}</caption>{top}{lines}</table>"
