"""Short calls of the program: everything except runs."""

from __future__ import annotations

import os
import subprocess
import weakref
from typing import IO, Any, Optional, Sequence

from runner_llm._errors import failure, pass_on
from runner_llm._find import find_runner


def environment(secrets: Optional[dict[str, str]] = None) -> dict[str, str]:
    """The environment of the program: this environment, without variables for a terminal."""
    variables = {**os.environ, **(secrets or {})}
    variables.pop("RUNNER_DASHBOARD", None)
    return variables


class Child:
    """The program as a process, which reads a pipe of this Python until the pipe closes.

    The program is interrupted when nothing refers to this object, or when this Python ends or dies.

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
        read_end, write_end = os.pipe()
        #: Interrupts the program.
        self.let_go = weakref.finalize(self, os.close, write_end)
        try:
            self.process: subprocess.Popen[bytes] = subprocess.Popen(
                command,
                env={**environment(secrets), "RUNNER_PARENT_PIPE": str(read_end)},
                pass_fds=(read_end,),
                start_new_session=True,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
            )
        finally:
            os.close(read_end)


def output(
    arguments: Sequence[str],
    *,
    stdin: Optional[str] = None,
    allowed: Sequence[int] = (0,),
) -> str:
    """The program's text on stdout.

    Raises:
        RunnerError: If the exit code is not allowed.
    """
    return execute(arguments, stdin=stdin, allowed=allowed).stdout


def execute(
    arguments: Sequence[str],
    *,
    stdin: Optional[str] = None,
    allowed: Sequence[int] = (0,),
) -> subprocess.CompletedProcess[str]:
    """Executes the program, and returns its exit code and output.

    Raises:
        RunnerError: If the exit code is not allowed.
    """
    command = [find_runner(), *arguments]
    source: dict[str, Any] = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    ended = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        env=environment(),
        **source,
    )
    if ended.returncode not in allowed:
        raise failure(ended.returncode, ended.stderr, command)
    pass_on(ended.stderr)
    return ended


def into_file(arguments: Sequence[str], file: IO[bytes]) -> None:
    """Executes the program with its stdout in a file.

    Raises:
        RunnerError: If the program fails.
    """
    command = [find_runner(), *arguments]
    ended = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=file,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    stderr = ended.stderr.decode("utf-8", "replace")
    if ended.returncode != 0:
        raise failure(ended.returncode, stderr, command)
    pass_on(stderr)
