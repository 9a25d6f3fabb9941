"""Executes the program: `python -m runner_llm ARGS` is `runner ARGS`."""

from __future__ import annotations

import os
import subprocess
import sys

from runner_llm._find import RunnerNotFound, find_runner


def main() -> int:
    """Executes the program with the arguments of this process, and returns its exit code."""
    try:
        program = find_runner()
    except RunnerNotFound as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    command = [program, *sys.argv[1:]]
    if os.name != "nt":
        # The program takes this process's place, so signals and the exit code are its own.
        sys.stdout.flush()
        sys.stderr.flush()
        os.execv(program, command)
    return subprocess.call(command)


if __name__ == "__main__":
    sys.exit(main())
