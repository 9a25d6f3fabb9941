"""Fixtures: the real program, a mock engine, and a run of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Iterator

import pytest
import runner_llm

#: A short run, whose flags a test may override.
SHORT: dict[str, Any] = {
    "backend": "vllm",
    "dataset_name": "random",
    "random_input_len": 32,
    "random_output_len": 8,
    "num_prompts": 20,
    "request_rate": 100,
    "interval": 0.1,
}

#: Longer than any test measures.
LONG: dict[str, Any] = {**SHORT, "num_prompts": 100_000, "request_rate": 20}

Measure = Callable[..., runner_llm.Run]


@pytest.fixture(scope="session")
def engine() -> Iterator[runner_llm.MockEngine]:
    with runner_llm.mock(ttft="10ms", itl="2ms") as engine:
        yield engine


@pytest.fixture
def measure(engine: runner_llm.MockEngine, tmp_path: Path) -> Measure:
    def measure(scenario: Any = None, **flags: Any) -> runner_llm.Run:
        flags = {"base_url": engine.base_url, "output_dir": tmp_path, **flags}
        if scenario is None:
            flags = {**SHORT, **flags}
        return runner_llm.run(scenario, **flags)

    return measure


@pytest.fixture(scope="session")
def run(
    engine: runner_llm.MockEngine, tmp_path_factory: pytest.TempPathFactory
) -> runner_llm.Run:
    folder = tmp_path_factory.mktemp("runs")
    return runner_llm.run(**SHORT, base_url=engine.base_url, output_dir=folder)
