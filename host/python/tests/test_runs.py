"""Runs of the real program against its mock engine."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Optional

import pytest
import runner_llm
from conftest import LONG, SHORT, Measure


def test_a_run_by_flags(run: runner_llm.Run) -> None:
    assert run.path.is_absolute() and run.path.is_dir()
    assert run.name == run.plan["name"]
    summary = run.summary
    assert (summary.requests.successful, summary.requests.failed) == (20, 0)
    assert summary.tokens.output.total == 20 * 8
    assert summary.metrics["ttft"].unit == "ms"
    assert 10 <= summary.metrics["ttft"].median < 1_000
    assert run.verdict == summary.verdict == run.summary_json["verdict"]
    ids = [finding["id"] for finding in run.summary_json["findings"]]
    assert [finding.id for finding in run.findings] == ids
    assert "few-samples" in ids
    assert not run.is_interrupted
    assert runner_llm.Run.open(run.path) == run
    assert runner_llm.Run.open(str(run.path)).summary == summary


SCENARIO: dict[str, Any] = {
    "name": "By a dict",
    "backend": {"plugin": "backends/vllm.wasm"},
    "dataset": {
        "plugin": "datasets/random.wasm",
        "config": {"input-len": 16, "output-len": 4},
    },
    "load": {"requests": 10, "arrival": "constant", "rate": 100.0},
}

TEXT = """
name = "By text"
backend.plugin = "backends/vllm.wasm"
dataset.plugin = "datasets/random.wasm"
load = { requests = 10, rate = 100.0, arrival = "constant" }
"""


@pytest.mark.parametrize(
    ("scenario", "name"), [(SCENARIO, "By a dict"), (TEXT, "By text"), (None, "By a file")]
)
def test_a_run_by_a_scenario(
    scenario: Any, name: str, measure: Measure, tmp_path: Path
) -> None:
    if scenario is None:
        scenario = tmp_path / "file.toml"
        scenario.write_text(TEXT.replace("By text", "By a file"))
    keys = {"backend.config.route": "chat", "load.requests": 7}
    run = measure(scenario, set=keys, seed=3)
    assert run.name == name
    assert run.plan["load"]["seed"] == 3
    assert run.plan["backend"]["config"] == {"route": "chat"}
    assert run.summary.requests.successful == 7


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL"])
def test_a_python_that_is_killed_leaves_nothing_behind(name: str, tmp_path: Path) -> None:
    script = f"""
import runner_llm, signal, sys
engine = runner_llm.mock(ttft="10ms", itl="2ms")
run = runner_llm.start(**{LONG!r}, base_url=engine.base_url, output_dir={str(tmp_path)!r})
next(progress for progress in run if progress.answered)
print(run.pid, engine._process.pid, flush=True)
signal.pause()
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(runner_llm.__file__).parent.parent)}
    words = [sys.executable, "-c", script]
    python = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)
    assert python.stdout is not None
    children = [int(word) for word in python.stdout.readline().split()]
    assert len(children) == 2
    python.send_signal(getattr(signal, name))
    python.wait()
    # The run's folder is whole: it was interrupted, and not killed.
    while any(_lives(child) for child in children):
        time.sleep(0.05)
    (folder,) = tmp_path.iterdir()
    assert runner_llm.Run.open(folder).is_interrupted


def _lives(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rsplit(")", 1)[1].split()[0] != "Z"


def test_a_built_in_scenario(measure: Measure) -> None:
    run = measure("scenarios/quickstart.toml", num_prompts=5, request_rate=50)
    assert run.summary.requests.successful == 5


def test_progress(measure: Measure) -> None:
    seen: list[runner_llm.Progress] = []
    run = measure(num_prompts=50, request_rate=50, interval=0.05, progress=seen.append)
    assert len(seen) > 1
    assert {progress.run for progress in seen} == {run.path}
    assert {progress.name for progress in seen} == {run.name}
    assert {progress.requests for progress in seen} == {50}
    shares = [progress.share for progress in seen]
    assert shares == sorted(shares) and shares[-1] == 1.0
    last = seen[-1]
    assert (last.phase, last.answered, last.failed, last.in_flight) == ("over", 50, 0, 0)
    assert str(last) == f"{run.name}: over, 50/50 done, 0 in flight"


def test_progress_while_requests_are_sent(
    engine: runner_llm.MockEngine, tmp_path: Path
) -> None:
    with runner_llm.start(**LONG, base_url=engine.base_url, output_dir=tmp_path) as process:
        middle = next(seen for seen in process if seen.answered > 5)
        process.interrupt()
    assert (middle.phase, middle.failed) == ("measuring", 0)
    assert middle.elapsed_s is not None and 0 < middle.elapsed_s < 120
    assert middle.ttft_p50_ms is not None and middle.ttft_p50_ms >= 10
    assert 0 < middle.share < 0.1


def test_an_error_in_the_callback_ends_the_program(
    engine: runner_llm.MockEngine, tmp_path: Path
) -> None:
    def fails(progress: runner_llm.Progress) -> None:
        if progress.answered:
            raise LookupError("of the callback")

    with pytest.raises(LookupError, match="of the callback"):
        runner_llm.run(**LONG, base_url=engine.base_url, output_dir=tmp_path, progress=fails)
    (folder,) = tmp_path.iterdir()
    assert runner_llm.Run.open(folder).is_interrupted


def test_an_interrupted_process_keeps_its_results(
    engine: runner_llm.MockEngine, tmp_path: Path
) -> None:
    with runner_llm.start(**LONG, base_url=engine.base_url, output_dir=tmp_path) as process:
        for progress in process:
            if progress.answered >= 3:
                assert process.runs == [runner_llm.Run.open(progress.run)]
                process.interrupt()
                break
    (run,) = process.wait()
    assert run.is_interrupted
    assert 3 <= run.summary.requests.successful < 1_000
    assert "interrupted" in [finding.id for finding in run.findings]
    assert "Serving Benchmark Result" in process.stdout


def test_an_exception_leaves_no_process(
    engine: runner_llm.MockEngine, tmp_path: Path
) -> None:
    flags = {**LONG, "base_url": engine.base_url, "output_dir": tmp_path}
    with pytest.raises(LookupError), runner_llm.start(**flags) as process:
        next(progress for progress in process if progress.answered)
        raise LookupError
    assert process.is_over
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)
    (run,) = process.runs
    assert run.is_interrupted


def test_the_end_of_the_block_waits_for_the_program(
    engine: runner_llm.MockEngine, tmp_path: Path
) -> None:
    flags = {**SHORT, "base_url": engine.base_url, "output_dir": tmp_path}
    with runner_llm.start(**flags) as process:
        assert not process.is_over
    assert process.is_over
    (run,) = process.wait()
    assert not run.is_interrupted and process.runs == [run]


def test_stderr_can_be_read_during_the_run(
    engine: runner_llm.MockEngine, tmp_path: Path
) -> None:
    # The program first names the default dataset, and at the end the folder of records.
    flags = {**SHORT, "base_url": engine.base_url, "output_dir": tmp_path}
    del flags["dataset_name"], flags["random_input_len"], flags["random_output_len"]
    with runner_llm.start(**flags) as process:
        for _ in process:
            early = process.stderr
            assert process.stderr.startswith(early)
    lines = process.stderr.splitlines()
    assert lines[0].startswith("note: no dataset is named")
    assert any(line.startswith("records: ") for line in lines[1:])
    assert "\0" not in process.stderr


def test_another_process_interrupts_the_program(
    engine: runner_llm.MockEngine, tmp_path: Path
) -> None:
    with runner_llm.start(**LONG, base_url=engine.base_url, output_dir=tmp_path) as process:
        for progress in process:
            if progress.answered:
                os.kill(process.pid, signal.SIGINT)
                break
        with pytest.raises(runner_llm.Interrupted) as caught:
            process.wait()
    assert caught.value.exit_code == 130
    assert caught.value.run is not None and caught.value.run.is_interrupted


KILLED = """
import os, sys, runner_llm
def show(progress):
    if progress.answered:
        print("measuring", flush=True)
try:
    runner_llm.run(**%r, base_url=sys.argv[1], output_dir=sys.argv[2], progress=show)
except KeyboardInterrupt as interrupted:
    print(type(interrupted).__name__, interrupted.run.path, interrupted.run.is_interrupted)
"""


def test_ctrl_c(engine: runner_llm.MockEngine, tmp_path: Path) -> None:
    # The interpreter may have been started where SIGINT is ignored, as in the background.
    words = [sys.executable, "-c", KILLED % LONG, engine.base_url, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(Path(runner_llm.__file__).parent.parent)}
    process = subprocess.Popen(
        words,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "measuring\n"
    # As a terminal and Jupyter do: to all processes of the group.
    os.killpg(process.pid, signal.SIGINT)
    stdout, _ = process.communicate(timeout=60)
    (folder,) = tmp_path.iterdir()
    assert stdout.splitlines()[-1] == f"RunInterrupted {folder} True"
    assert process.returncode == 0


def test_several_runs(engine: runner_llm.MockEngine, tmp_path: Path) -> None:
    flags = {**SHORT, "base_url": engine.base_url, "output_dir": tmp_path, "repeat": 2}
    runs = runner_llm.run_all(**flags)
    assert len(runs) == 2 and runs[0] != runs[1]
    with pytest.raises(runner_llm.SeveralRuns) as caught:
        runner_llm.run(**flags)
    assert len(caught.value.runs) == 2


def test_the_key_is_in_no_command_line(measure: Measure) -> None:
    key = "sk-0123456789-of-a-test"
    lines: list[bytes] = []

    def look(_: object) -> None:
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                lines.append(file.read_bytes())
            except OSError:
                pass

    if not Path("/proc/self/cmdline").exists():
        pytest.skip("this system has no /proc")
    run = measure(api_key=key, header={"X-Tenant": "of-great-secrecy"}, progress=look)
    assert any(str(run.path.parent).encode() in line for line in lines)
    assert not any(key.encode() in line or b"of-great-secrecy" in line for line in lines)
    for file in run.path.iterdir():
        assert key.encode() not in file.read_bytes(), file
    assert run.plan["target"]["api-key"] is not False
    assert run.plan["target"]["headers"] == ["x-tenant"]


def kind_of(**flags: Any) -> runner_llm.RunnerError:
    with pytest.raises(runner_llm.RunnerError) as caught:
        runner_llm.run(**flags)
    return caught.value


def test_errors_by_exit_code(engine: runner_llm.MockEngine, tmp_path: Path) -> None:
    flags = {**SHORT, "base_url": engine.base_url, "output_dir": tmp_path}
    expected: list[tuple[type, int, dict[str, Any], str]] = [
        (runner_llm.CommandLineError, 2, {"nun_prompts": 1}, "--num-prompts"),
        (runner_llm.InputError, 3, {"set": {"load.rat": 1}}, "load.rat"),
        (runner_llm.PluginError, 4, {"backend": "vlm"}, "did you mean `backends/vllm.wasm`"),
        (runner_llm.TargetError, 5, {"base_url": "http://127.0.0.1:9"}, "cannot reach"),
    ]
    for kind, code, wrong, words in expected:
        error = kind_of(**{**flags, **wrong})
        assert (type(error), error.exit_code, error.runs) == (kind, code, [])
        assert words in str(error) and words in error.stderr
        assert error.command[1] == "run"
    error = kind_of(**flags, threshold=["ttft.p99 <= 1ms", "requests.failed <= 0"])
    assert (type(error), error.exit_code) == (runner_llm.ThresholdNotMet, 6)
    assert error.run is not None
    assert [checked.held for checked in error.run.summary.thresholds] == [False, True]


def test_an_invalid_run_is_an_error_only_if_asked(tmp_path: Path) -> None:
    flags: dict[str, Any] = {**SHORT, "output_dir": tmp_path}
    script = tmp_path / "script.toml"
    script.write_text('fault = [{ kind = "http-error", status = 503, share = 0.7 }]\n')
    with runner_llm.mock(ttft="5ms", itl="1ms", script=script) as engine:
        flags["base_url"] = engine.base_url
        run = runner_llm.run(**flags)
        assert run.verdict == "invalid"
        assert run.summary.requests.failed > 10
        error = kind_of(**flags, strict=True)
        assert (type(error), error.exit_code) == (runner_llm.InvalidRun, 7)
        assert error.run is not None and error.run.verdict == "invalid"
        # No threshold holds for an invalid run, so a gate does not open.
        error = kind_of(**flags, threshold="ttft.p50 <= 1h")
        assert type(error) is runner_llm.InvalidRun


def test_a_killed_run_can_be_read(engine: runner_llm.MockEngine, tmp_path: Path) -> None:
    folder: Optional[Path] = None
    with runner_llm.start(**LONG, base_url=engine.base_url, output_dir=tmp_path) as process:
        for progress in process:
            if progress.answered >= 3:
                folder = progress.run
                # Records are on disk within a second.
                time.sleep(1.5)
                os.kill(process.pid, signal.SIGKILL)
                break
        with pytest.raises(runner_llm.RunnerError, match="signal 9 ended the program"):
            process.wait()
    assert folder is not None and not (folder / "summary.json").exists()
    run = runner_llm.Run.open(folder)
    assert run.summary.requests.successful >= 3
    assert run.is_interrupted


def test_reports(run: runner_llm.Run, tmp_path: Path) -> None:
    assert "Serving Benchmark Result" in run.report()
    assert json.loads(run.report("json")) == run.summary_json
    assert len(run.report("jsonl").splitlines()) >= 20
    assert json.loads(run.report("json", style="vllm"))["completed"] == 20
    assert "  do:  " in run.report(details=True)
    with pytest.raises(runner_llm.CommandLineError, match="possible values"):
        run.report("word")
    with pytest.raises(ValueError, match=r"use save_report\(\)"):
        run.report("svg", output="x")
    for name, start in [("a.html", b"<!doctype html>"), ("a.md", b"#"), ("a.json", b"{")]:
        run.save_report(tmp_path / name)
        assert (tmp_path / name).read_bytes().lower().startswith(start)
    run.save_report(tmp_path / "charts", "svg")
    assert (tmp_path / "charts" / "ttft-ecdf.svg").read_text().startswith("<svg")


def test_pages_in_notebooks_are_isolated(measure: Measure) -> None:
    attack = '</td></iframe>"><script>alert(1)</script>'
    run = measure({**SCENARIO, "name": attack})
    assert run.name == attack
    shown = run._repr_html_()
    assert "<script" not in shown and "&lt;script&gt;" in shown
    page = run.page(300)._repr_html_()
    # One element, whose attributes hold all the rest, and whose scripts reach nothing outside.
    assert page.count("<") == 2 and page.startswith("<iframe ") and page.endswith("></iframe>")
    assert 'sandbox="allow-scripts"' in page and "allow-same-origin" not in page.split("srcdoc")[0]
    assert 'height="300"' in page


def test_a_folder_without_a_run(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"is not the folder of a run: .* plan.json"):
        runner_llm.Run.open(tmp_path)


def test_a_summary_of_another_version(run: runner_llm.Run, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("{}")
    document = {key: value for key, value in run.summary_json.items() if key != "tokens"}
    (tmp_path / "summary.json").write_text(json.dumps({**document, "further": 1}))
    other = runner_llm.Run.open(tmp_path)
    with pytest.raises(ValueError, match="has no key 'tokens'"):
        other.summary
    assert other.summary_json["further"] == 1


def test_intervals() -> None:
    for wrong in (0, -1, math.inf, math.nan):
        with pytest.raises(ValueError, match="interval= is a number of seconds"):
            runner_llm.start(interval=wrong)
