"""Runs under way: the program as a process, with its progress."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Callable, Iterator, Mapping, Optional, Sequence

from runner_llm._arguments import Scenario, run_call
from runner_llm._errors import RunInterrupted, SeveralRuns, failure, pass_on
from runner_llm._find import find_runner
from runner_llm._program import Child
from runner_llm._run import Run

#: The time between two looks at a growing file, in seconds.
_LOOK_EVERY = 0.05

#: The number of interrupts that make the program leave at once.
_LEAVES_AT = 3

_INVALID = 7
_INTERRUPTED = 130


@dataclass(frozen=True)
class Progress:
    """A run at one instant. Unknown values are `None`.

    Counts of requests that ended lag by the length of a reply.
    """

    run: Path
    """The run's folder."""
    name: str
    """The name of its scenario."""
    phase: str
    """`preparing`, `warm-up`, `measuring`, `draining` (nothing more is sent) or `over`."""
    requests: Optional[int]
    """The number of requests to measure, where the plan has one."""
    share: float
    """The share of the measurement that is over, from 0 to 1."""
    elapsed_s: Optional[float]
    """The measured time so far, in seconds."""
    left_s: Optional[float]
    """The estimated time left, in seconds."""
    in_flight: int
    """Requests whose replies have not ended, warmup included."""
    waiting: Optional[int]
    """Requests that are due and wait."""
    answered: int
    """Measured requests that were answered."""
    failed: int
    """Measured requests that failed."""
    cancelled: int
    """Measured requests that were cancelled on purpose."""
    output_tokens_per_s: Optional[float]
    """Output tokens per second, of the last seconds."""
    ttft_p50_ms: Optional[float]
    """The median time to first token of the last seconds, in milliseconds."""
    ttft_p99_ms: Optional[float]
    """Its 99th percentile, in milliseconds."""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Progress:
        """Reads the progress from parsed JSON."""
        return cls(
            run=Path(value["run"]),
            name=value["name"],
            phase=value["phase"],
            requests=value.get("requests"),
            share=value["share"],
            elapsed_s=value.get("elapsed-s"),
            left_s=value.get("left-s"),
            in_flight=value["in-flight"],
            waiting=value.get("waiting"),
            answered=value["answered"],
            failed=value["failed"],
            cancelled=value["cancelled"],
            output_tokens_per_s=value.get("output-tokens-per-s"),
            ttft_p50_ms=value.get("ttft-p50-ms"),
            ttft_p99_ms=value.get("ttft-p99-ms"),
        )

    def __str__(self) -> str:
        done = self.answered + self.failed + self.cancelled
        of = f"/{self.requests}" if self.requests is not None else ""
        words = f"{self.name}: {self.phase}, {done}{of} done, {self.in_flight} in flight"
        return words + (f", {self.failed} failed" if self.failed else "")


class RunProcess:
    """The program while it measures.

    Iterating gives its progress until it has ended. A `with` block waits for the program at its
    end, and interrupts the program first if an exception leaves the block. A process without
    references, and the process of a killed Python, are interrupted too.
    """

    def __init__(
        self,
        scenarios: Sequence[Scenario],
        interval: float,
        strict: bool,
        set: Optional[Mapping[str, Any]],
        api_key: Optional[str],
        flags: Mapping[str, Any],
    ) -> None:
        if not (interval > 0 and math.isfinite(interval)):
            raise ValueError(f"interval= is a number of seconds above 0, not {interval!r}")
        call = run_call(scenarios, set, api_key, flags)
        self._strict = strict
        self._interrupts = 0
        self._unread = b""
        self._order: dict[Path, None] = {}
        self._ended: Optional[list[Run]] = None
        self._progress = tempfile.NamedTemporaryFile(prefix="runner-", suffix=".progress")
        self._stdout = tempfile.TemporaryFile()
        self._stderr = tempfile.TemporaryFile()
        every = max(1, round(interval * 1000))
        self.command: list[str] = [
            find_runner(),
            "run",
            *call.words,
            # A variable may allow invalid runs, and then the exit code does not show them.
            "--strict",
            "--no-progress",
            f"--progress-every={every}ms",
            f"--progress-file={self._progress.name}",
        ]
        stdin: Any = subprocess.DEVNULL
        if call.stdin is not None:
            stdin = tempfile.TemporaryFile()
            stdin.write(call.stdin.encode("utf-8"))
            stdin.seek(0)
        self._child = Child(
            self.command,
            secrets=call.secrets,
            stdin=stdin,
            stdout=self._stdout,
            stderr=self._stderr,
        )
        self._process = self._child.process
        if call.stdin is not None:
            stdin.close()

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    @property
    def runs(self) -> list[Run]:
        """The runs that the program has begun, in their order."""
        for _ in self._new():
            pass
        return [Run(path) for path in self._order]

    @property
    def is_over(self) -> bool:
        """True if the program has ended."""
        return self._process.poll() is not None

    @property
    def stdout(self) -> str:
        """The text on stdout so far: the text block of each run."""
        return _text(self._stdout)

    @property
    def stderr(self) -> str:
        """The text on stderr so far: notes, warnings, errors."""
        return _text(self._stderr)

    def __iter__(self) -> Iterator[Progress]:
        while True:
            over = self.is_over
            # Read after `is_over`, so that no line is missed.
            yield from self._new()
            if over:
                return
            time.sleep(_LOOK_EVERY)

    def _new(self) -> Iterator[Progress]:
        """The progress since the last look."""
        if self._progress.closed:
            return
        self._unread += self._progress.read()
        while b"\n" in self._unread:
            line, self._unread = self._unread.split(b"\n", 1)
            progress = Progress.from_json(json.loads(line))
            self._order[progress.run] = None
            yield progress

    def interrupt(self) -> None:
        """Interrupts the program, which keeps its results.

        The first interrupt stops sending and waits for the replies under way. The second gives them
        up, and the third leaves at once.
        """
        self._interrupts += 1
        if not self.is_over:
            self._process.send_signal(signal.SIGINT)

    def wait(self) -> list[Run]:
        """Waits for the program, and returns its runs; after `interrupt`, the begun runs.

        Raises:
            RunnerError: If the program failed; see `runner_llm.run`.
        """
        for _ in self:
            pass
        if self._ended is None:
            self._ended = self._outcome()
        return self._ended

    def _outcome(self) -> list[Run]:
        code = self._process.wait()
        runs, stderr = self.runs, self.stderr
        stopped = code == _INTERRUPTED and self._interrupts > 0
        kept = code == _INVALID and not self._strict and not any(map(_fails_threshold, runs))
        if code != 0 and not stopped and not kept:
            raise failure(code, stderr, self.command, runs=runs)
        pass_on(stderr)
        return runs

    def __enter__(self) -> RunProcess:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], *_: object) -> None:
        is_failure, is_interrupted = kind is not None, False
        while not self.is_over:
            try:
                if is_failure and self._interrupts < _LEAVES_AT:
                    self.interrupt()
                self._process.wait()
            except KeyboardInterrupt:
                is_failure = is_interrupted = True
        if is_interrupted and kind is None:
            raise RunInterrupted(self.runs)


def _text(file: IO[bytes]) -> str:
    # The program writes at this file's own position, which must not move.
    parts: list[bytes] = []
    while part := os.pread(file.fileno(), 1 << 20, sum(map(len, parts))):
        parts.append(part)
    return b"".join(parts).decode("utf-8", "replace")


def _fails_threshold(run: Run) -> bool:
    """True if a threshold of the run does not hold."""
    return any(not checked.held for checked in run.summary.thresholds)


def start(
    *scenarios: Scenario,
    interval: float = 0.5,
    strict: bool = False,
    set: Optional[Mapping[str, Any]] = None,
    api_key: Optional[str] = None,
    **overrides: Any,
) -> RunProcess:
    """Starts to measure, and returns the process, whose iteration gives its progress.

        with runner_llm.start("chat.toml", base_url=url) as process:
            for progress in process:
                print(progress)
        (run,) = process.wait()

    `run` describes the arguments.
    """
    return RunProcess(scenarios, interval, strict, set, api_key, overrides)


def run_all(
    *scenarios: Scenario,
    progress: Optional[Callable[[Progress], object]] = None,
    interval: float = 0.5,
    strict: bool = False,
    set: Optional[Mapping[str, Any]] = None,
    api_key: Optional[str] = None,
    **overrides: Any,
) -> list[Run]:
    """Measures scenarios, folders of them, or repeats, and returns all runs in their order.

        runs = runner_llm.run_all("chat.toml", repeat=5, base_url=url)

    `run` describes the arguments and errors.
    """
    process = RunProcess(scenarios, interval, strict, set, api_key, overrides)
    try:
        with process:
            for seen in process:
                if progress is not None:
                    progress(seen)
    except KeyboardInterrupt:
        raise RunInterrupted(process.runs) from None
    return process.wait()


def run(
    scenario: Optional[Scenario] = None,
    *,
    progress: Optional[Callable[[Progress], object]] = None,
    interval: float = 0.5,
    strict: bool = False,
    set: Optional[Mapping[str, Any]] = None,
    api_key: Optional[str] = None,
    **overrides: Any,
) -> Run:
    """Measures one run, and returns it.

        run = runner_llm.run("chat.toml", base_url="http://127.0.0.1:8000", request_rate=20)

    Args:
        scenario: A path, the name of a built-in scenario, TOML text (a `str` of several lines), or
            a dict of a scenario's keys. Without a scenario, the flags describe the run. Text and
            dicts go to the program's stdin.
        progress: A function for each `Progress`, such as `print`.
        interval: The time between two calls of `progress`, in seconds.
        strict: Raise `InvalidRun` if the measurement is invalid, or more than half of the requests
            failed. Otherwise the run is returned with its data, and its `verdict` is `invalid`.
            An invalid run meets no threshold, so with thresholds it is always an error.
        set: Keys of the scenario that have no flag: `{"backend.config.route": "chat"}`.
        api_key: The key for the engine. It goes into the program's environment, never into its
            command line. Without a key, the program reads its usual variable.
        overrides: Flags of `runner run`, with `_` for `-`: `num_prompts=500`, `ignore_eos=True`. A
            list gives a flag several times. `None` and `False` leave the flag out.

    Raises:
        RunnerError: A subclass if the program failed, with the exit code, stderr and the begun runs
            as attributes. `ThresholdNotMet` if a threshold does not hold, and `TargetError` if
            every request failed.
        RunInterrupted: After Ctrl-C. The program ends in good order, and its run can be read.
        ValueError: If a secret would get into the command line.
    """
    scenarios = () if scenario is None else (scenario,)
    runs = run_all(
        *scenarios,
        progress=progress,
        interval=interval,
        strict=strict,
        set=set,
        api_key=api_key,
        **overrides,
    )
    if len(runs) != 1:
        raise SeveralRuns(
            f"{len(runs)} runs were made; run_all() returns several, and they are in `runs`",
            exit_code=0,
            runs=runs,
        )
    return runs[0]
