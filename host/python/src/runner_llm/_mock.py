"""The mock engine, for trials without a GPU."""

from __future__ import annotations

import subprocess
import tempfile
import weakref
from typing import Any

from runner_llm._arguments import flag_words
from runner_llm._errors import failure
from runner_llm._find import find_runner
from runner_llm._program import Child

_LISTENING = "listening on "


class MockEngine:
    """A running mock engine, until the `with` block ends or `stop` is called.

    Attributes:
        base_url: Its address, for `base_url=`.
    """

    base_url: str

    def __init__(self, flags: dict[str, Any]) -> None:
        self.base_url = ""
        words = flag_words({"port": 0, **flags}, own={})
        command = [find_runner(), "mock", *words]
        errors = tempfile.TemporaryFile()
        # Ctrl-C is for the run; the engine is still needed for its last replies.
        self._child = Child(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
        )
        self._process = self._child.process
        self._finalizer = weakref.finalize(self, _end, self._process)
        assert self._process.stdout is not None
        line = self._process.stdout.readline().decode("utf-8", "replace").strip()
        if not line.startswith(_LISTENING):
            code = self._process.wait()
            errors.seek(0)
            raise failure(code, errors.read().decode("utf-8", "replace"), command)
        self.base_url = line[len(_LISTENING) :]

    def stop(self) -> None:
        """Stops the engine."""
        self._finalizer()

    def __enter__(self) -> MockEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<runner_llm.MockEngine at {self.base_url}>"


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def mock(**flags: Any) -> MockEngine:
    """Starts the mock engine, which answers at exact times.

        with runner_llm.mock(ttft="20ms", itl="5ms") as engine:
            run = runner_llm.run(backend="vllm", base_url=engine.base_url, num_prompts=100)

    Flags of `runner mock` are keywords. The system chooses a port, unless `port=` does.

    Raises:
        RunnerError: If it does not start.
    """
    return MockEngine(flags)
