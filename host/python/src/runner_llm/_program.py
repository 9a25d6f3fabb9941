"""Calls of the program that return at once with a result: everything but runs."""

from __future__ import annotations

import os
import subprocess
import weakref
from typing import IO, Any, Optional, Sequence

from runner_llm._errors import failure, pass_on
from runner_llm._find import find_runner


def environment(secrets: Optional[dict[str, str]] = None) -> dict[str, str]:
    """The environment of the program: this one, without what needs a terminal."""
    variables = {**os.environ, **(secrets or {})}
    variables.pop("RUNNER_DASHBOARD", None)
    return variables


class Child:
    """The program as a process that is interrupted when nothing refers to it any more, or when this
    Python ends, however it does: the program reads a pipe until this end of it is closed.

    A terminal's Ctrl-C reaches this Python alone.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        stdin: Any,
        stdout: Any,
        stderr: IO[bytes],
        secrets: Optional[dict[str, str]] = None,
    ) -> None:
        reads, writes = os.pipe()
        #: Has the program interrupted.
        self.let_go = weakref.finalize(self, os.close, writes)
        try:
            self.process: subprocess.Popen[bytes] = subprocess.Popen(
                command,
                env={**environment(secrets), "RUNNER_PARENT_PIPE": str(reads)},
                pass_fds=(reads,),
                start_new_session=True,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
            )
        finally:
            os.close(reads)


def output(
    arguments: Sequence[str],
    *,
    stdin: Optional[str] = None,
    allowed: Sequence[int] = (0,),
) -> str:
    """What the program writes to stdout.

    Raises:
        RunnerError: If the exit code is none of those allowed.
    """
    return called(arguments, stdin=stdin, allowed=allowed).stdout


def called(
    arguments: Sequence[str],
    *,
    stdin: Optional[str] = None,
    allowed: Sequence[int] = (0,),
) -> subprocess.CompletedProcess[str]:
    """A call that has ended, with what the program wrote.

    Raises:
        RunnerError: If the exit code is none of those allowed.
    """
    command = [find_runner(), *arguments]
    given: dict[str, Any] = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    ended = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        env=environment(),
        **given,
    )
    if ended.returncode not in allowed:
        raise failure(ended.returncode, ended.stderr, command)
    pass_on(ended.stderr)
    return ended


def into_file(arguments: Sequence[str], file: IO[bytes]) -> None:
    """Lets the program write its stdout into a file.

    Raises:
        RunnerError: If it fails.
    """
    command = [find_runner(), *arguments]
    ended = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=file,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    said = ended.stderr.decode("utf-8", "replace")
    if ended.returncode != 0:
        raise failure(ended.returncode, said, command)
    pass_on(said)
