"""Comparisons and audits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import runner_llm
from conftest import SHORT


#: A busy machine delays all requests of a moment. Many long answers, sent over seconds, hide this delay.
JUDGED: dict[str, Any] = {**SHORT, "num_prompts": 200, "request_rate": 40}


def measured(ttft: str, folder: Path) -> runner_llm.Run:
    with runner_llm.mock(ttft=ttft, itl="2ms") as engine:
        return runner_llm.run(**JUDGED, base_url=engine.base_url, output_dir=folder)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> runner_llm.Run:
    return measured("500ms", tmp_path_factory.mktemp("faster"))


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> runner_llm.Run:
    return measured("2s", tmp_path_factory.mktemp("slower"))


#: A busy machine makes a short run invalid, and these tests check the comparison.
ANY_VERDICT: dict[str, Any] = {"allow": ["verdict"], "each": True}


def test_a_comparison(run: runner_llm.Run, slower: runner_llm.Run) -> None:
    # Where the variation is assumed, a shared machine makes it ten times as large.
    comparison = runner_llm.compare(run, slower, **ANY_VERDICT, run_variation="2%")
    row = comparison.figure("ttft.mean")
    assert (row.unit, row.judgement) == ("ms", "worse"), row
    assert row.baseline == pytest.approx(run.summary.metrics["ttft"].mean)
    assert row.value == pytest.approx(slower.summary.metrics["ttft"].mean)
    assert row.interval is not None and row.interval.low is not None and row.interval.low > 500
    assert [side.sources for side in comparison.sides] == [[run.path.name], [slower.path.name]]
    assert comparison.figure("ttft.mean", "B") == row
    for name, side, words in [
        ("ttft.mean", "C", "the sides are B"),
        ("tpot.men", None, "did you mean tpot.mean"),
    ]:
        with pytest.raises(KeyError, match=words):
            comparison.figure(name, side)
    assert not comparison.fails
    shown = comparison._repr_html_()
    low = f"{row.interval.low:+.4g} to "
    sides = [run.path.name, slower.path.name]
    for words in ["ttft.mean (ms)", *sides, low, "color: #d1495b", ">worse<"]:
        assert words in shown, words
    assert comparison.document.level == comparison.json["level"] == 95.0


def test_a_condition(run: runner_llm.Run, slower: runner_llm.Run) -> None:
    held = ["ttft.mean +5%", "requests.success-share -1%"]
    with pytest.raises(runner_llm.ThresholdNotMet) as caught, pytest.warns(
        runner_llm.RunnerWarning, match="--fail-if judges one run per side"
    ):
        runner_llm.compare(run, slower, **ANY_VERDICT, fail_if=held)
    comparison = caught.value.comparison
    assert comparison is not None and comparison.fails
    assert [outcome.fails for outcome in comparison.conditions] == [True, False]
    with pytest.warns(runner_llm.RunnerWarning):
        better = runner_llm.compare(slower, run, **ANY_VERDICT, fail_if="ttft.mean +5%")
    assert not better.fails and len(better.conditions) == 1


def test_sides_that_cannot_be_compared(run: runner_llm.Run, tmp_path: Path) -> None:
    with pytest.raises(runner_llm.InputError, match="nothing-here"):
        runner_llm.compare(run, tmp_path / "nothing-here")


RESULT = """============ Serving Benchmark Result ============
Successful requests:                     {answered}
Benchmark duration (s):                  10.00
Total input tokens:                      1000
Total generated tokens:                  2000
Request throughput (req/s):              10.00
Output token throughput (tok/s):         200.00
Total Token throughput (tok/s):          300.00
---------------Time to First Token----------------
Mean TTFT (ms):                          20.00
Median TTFT (ms):                        20.00
P99 TTFT (ms):                           30.00
==================================================
"""


def test_an_audit(tmp_path: Path) -> None:
    wrong, right = tmp_path / "wrong.txt", tmp_path / "right.txt"
    wrong.write_text(RESULT.format(answered=50))
    right.write_text(RESULT.format(answered=100))
    audit = runner_llm.audit([wrong, right])
    assert [result.verdict for result in audit.results][0] == "invalid"
    assert audit.totals.invalid == 1
    assert audit.verdict == "invalid"
    assert audit.results[0].claim.source.file == str(wrong)
    assert str(wrong) in audit._repr_html_()
    with pytest.raises(runner_llm.InvalidRun) as caught:
        runner_llm.audit(wrong, strict=True)
    assert caught.value.audit is not None and caught.value.audit.verdict == "invalid"
    assert runner_llm.audit(right, strict=True).totals.invalid == 0
    with pytest.raises(runner_llm.InputError, match="nothing-here"):
        runner_llm.audit(tmp_path / "nothing-here")
    with pytest.raises(ValueError, match="no file `-`"):
        runner_llm.audit("-")


def test_a_mock_engine_that_cannot_start() -> None:
    with pytest.raises(runner_llm.CommandLineError, match="--ttft"):
        runner_llm.mock(ttft="word")
