"""Measures LLM serving engines from Python, and reads the results.

    import runner_llm

    run = runner_llm.run("chat.toml", base_url="http://127.0.0.1:8000")
    print(run.verdict, run.summary.metrics["ttft"].percentiles["p99"], "ms")
    frame = run.requests.to_polars()

This module calls the program `runner`, which makes the load and computes every figure. Nothing is
measured in Python, so Python's pace does not matter. Each error of the program is an exception with
its exit code and its message.
"""

from __future__ import annotations

from runner_llm._arguments import Scenario
from runner_llm._audit import Audit, audit
from runner_llm._compare import Comparison, Side, compare
from runner_llm._errors import (
    CommandLineError,
    InputError,
    Interrupted,
    InvalidRun,
    PluginError,
    ProgramBug,
    RunInterrupted,
    RunnerError,
    RunnerWarning,
    SeveralRuns,
    TargetError,
    ThresholdNotMet,
)
from runner_llm._find import RunnerNotFound, find_runner
from runner_llm._mock import MockEngine, mock
from runner_llm._process import Progress, RunProcess, run, run_all, start
from runner_llm._run import Page, Run
from runner_llm._table import Table

__all__ = [
    "Audit",
    "CommandLineError",
    "Comparison",
    "InputError",
    "Interrupted",
    "InvalidRun",
    "MockEngine",
    "Page",
    "PluginError",
    "ProgramBug",
    "Progress",
    "Run",
    "RunInterrupted",
    "RunProcess",
    "RunnerError",
    "RunnerNotFound",
    "RunnerWarning",
    "Scenario",
    "SeveralRuns",
    "Side",
    "Table",
    "TargetError",
    "ThresholdNotMet",
    "audit",
    "compare",
    "find_runner",
    "mock",
    "run",
    "run_all",
    "start",
]
