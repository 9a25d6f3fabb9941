"""Errors: one class for each exit code of the program."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Optional, Sequence

if TYPE_CHECKING:
    from runner_llm._audit import Audit
    from runner_llm._compare import Comparison
    from runner_llm._run import Run


class RunnerError(Exception):
    """The program failed; the classes below name the causes.

    Attributes:
        exit_code: The program's exit code; negative if a signal ended it.
        stderr: The text on stderr, with the reason.
        command: Its command line, without secrets.
        runs: The runs that it began, which can be read.
        comparison: The comparison, of `compare(..., fail_if=...)`.
        audit: The audit, of `audit(..., strict=True)`.
    """

    exit_code: int
    stderr: str
    command: list[str]
    runs: list[Run]
    comparison: Optional[Comparison]
    audit: Optional[Audit]

    def __init__(
        self,
        message: str,
        *,
        exit_code: int,
        stderr: str = "",
        command: Sequence[str] = (),
        runs: Sequence[Run] = (),
        comparison: Optional[Comparison] = None,
        audit: Optional[Audit] = None,
    ) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.stderr = stderr
        self.command = list(command)
        self.runs = list(runs)
        self.comparison = comparison
        self.audit = audit

    @property
    def run(self) -> Optional[Run]:
        """The last run that the program began."""
        return self.runs[-1] if self.runs else None


class ProgramBug(RunnerError):
    """Exit code 1: a bug in the program; please report it with `stderr`."""


class CommandLineError(RunnerError):
    """Exit code 2: a keyword that is no flag, or a value that a flag does not take."""


class InputError(RunnerError):
    """Exit code 3: a wrong scenario or file; of a comparison, sides that are not comparable."""


class PluginError(RunnerError):
    """Exit code 4: a plugin did not load, or broke its contract."""


class TargetError(RunnerError):
    """Exit code 5: the engine is not reachable, or every request failed."""


class ThresholdNotMet(RunnerError):
    """Exit code 6: a threshold does not hold, or a condition of `fail_if` holds."""


class InvalidRun(RunnerError):
    """Exit code 7: the measurement, or an audited result, is invalid."""


class Interrupted(RunnerError):
    """Exit code 130: another process interrupted the program."""


class SeveralRuns(RunnerError):
    """`run` made several runs, which are in `runs`; `run_all` returns all runs."""


class RunInterrupted(KeyboardInterrupt):
    """Ctrl-C interrupted a measurement. `runs` has the results until then.

    It is a `KeyboardInterrupt`, so `except Exception` does not swallow it.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        folders = ", ".join(str(run.path) for run in runs)
        kept = f"; the results so far are in {folders}" if runs else " before it measured anything"
        super().__init__(f"the run was interrupted{kept}")
        self.runs: list[Run] = list(runs)

    @property
    def run(self) -> Optional[Run]:
        """The last run that the program began."""
        return self.runs[-1] if self.runs else None


class RunnerWarning(UserWarning):
    """The program succeeded, and warned that a result may mislead."""


_WARNING = "warning: "


def pass_on(stderr: str) -> None:
    """Passes on the warnings of a program that succeeded."""
    for line in stderr.splitlines():
        if line.startswith(_WARNING):
            warnings.warn(line[len(_WARNING) :], RunnerWarning, stacklevel=3)


_KINDS: dict[int, type[RunnerError]] = {
    1: ProgramBug,
    2: CommandLineError,
    3: InputError,
    4: PluginError,
    5: TargetError,
    6: ThresholdNotMet,
    7: InvalidRun,
    130: Interrupted,
}


def failure(
    exit_code: int,
    stderr: str,
    command: Sequence[str],
    *,
    runs: Sequence[Run] = (),
    comparison: Optional[Comparison] = None,
    audit: Optional[Audit] = None,
) -> RunnerError:
    """The error for an exit code."""
    kind = _KINDS.get(exit_code, RunnerError)
    if exit_code < 0:
        outcome = f"signal {-exit_code} ended the program"
    else:
        outcome = f"the program ended with exit code {exit_code}"
    # Notes and warnings come before the reason; `stderr` has them.
    lines = stderr.strip().split("\n")
    first = next((at for at, line in enumerate(lines) if line.startswith("error: ")), 0)
    reason = "\n".join(lines[first:])
    return kind(
        f"{outcome}: {reason}" if reason else outcome,
        exit_code=exit_code,
        stderr=stderr,
        command=command,
        runs=runs,
        comparison=comparison,
        audit=audit,
    )
