"""Tables of runs, read by libraries that know nothing of this module."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import runner_llm


def measured(table: runner_llm.Table) -> list[dict[str, Any]]:
    return [row for row in table.to_pylist() if row["phase"] == "measure"]


def test_requests(run: runner_llm.Run) -> None:
    rows = measured(run.requests)
    assert len(rows) == 20
    assert {row["run"] for row in rows} == {run.path.name}
    assert {row["outcome"] for row in rows} == {"complete"}
    assert sum(row["output_tokens"] for row in rows) == run.summary.tokens.output.total
    for row in rows:
        waited = (row["first_token_ns"] - row["sent_ns"]) / 1e6
        assert row["ttft_ms"] == pytest.approx(waited)
        assert row["due_ns"] <= row["sent_ns"] < row["first_token_ns"]
        assert sorted(row["event_ns"]) == row["event_ns"]
        assert row["event_ns"][0] == row["first_token_ns"]
    mean = sum(row["ttft_ms"] for row in rows) / len(rows)
    assert mean == pytest.approx(run.summary.metrics["ttft"].mean)


def test_events(run: runner_llm.Run) -> None:
    rows = measured(run.events)
    ends = {row["index"]: row["event_ns"] for row in measured(run.requests)}
    assert sum(map(len, ends.values())) == len(rows) >= 20


def test_figures_and_series(run: runner_llm.Run) -> None:
    values = {row["name"]: row for row in run.figures.to_pylist()}
    ttft = values["ttft.p99"]
    assert ttft["unit"] == "ms"
    assert ttft["value"] == pytest.approx(run.summary.metrics["ttft"].percentiles["p99"])
    names = {row["series"] for row in run.series.to_pylist()}
    assert {"output-tokens", "in-flight"} <= names


def test_polars_reads_a_table_as_it_is(run: runner_llm.Run) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(run.requests)
    rows = run.requests.to_pylist()
    assert frame.to_dicts() == rows
    assert frame.equals(run.requests.to_polars())
    mean = frame.filter(polars.col("phase") == "measure")["ttft_ms"].mean()
    assert mean == pytest.approx(run.summary.metrics["ttft"].mean)


@pytest.mark.further
def test_pyarrow_reads_a_table_as_it_is(run: runner_llm.Run) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(run.requests)
    assert table.to_pylist() == run.requests.to_pylist()
    assert table.schema.field("ttft_ms").metadata[b"unit"] == b"ms"
    assert run.requests.to_arrow().equals(table)


@pytest.mark.further
def test_duckdb_reads_a_table_as_it_is(run: runner_llm.Run) -> None:
    duckdb = pytest.importorskip("duckdb")
    requests, rows = run.requests, run.requests.to_pylist()
    (found,) = duckdb.sql("SELECT count(*), max(ttft_ms) FROM requests").fetchall()
    assert found == (len(rows), max(row["ttft_ms"] or 0 for row in rows))
    assert duckdb.sql("SELECT * FROM requests").fetchall() == [tuple(row.values()) for row in rows]
    del requests


@pytest.mark.further
def test_pandas_reads_a_table(run: runner_llm.Run) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    rows, frame = run.requests.to_pylist(), run.requests.to_pandas()
    assert list(frame["id"]) == [row["id"] for row in rows]
    mean = frame[frame.phase == "measure"].ttft_ms.mean()
    assert mean == pytest.approx(run.summary.metrics["ttft"].mean)
    if hasattr(pandas.DataFrame, "from_arrow"):
        assert pandas.DataFrame.from_arrow(run.requests).shape == frame.shape


def test_columns_say_their_units(run: runner_llm.Run) -> None:
    nanoarrow = pytest.importorskip("nanoarrow")
    schema = nanoarrow.ArrayStream(run.requests).schema
    about = {field.name: dict(field.metadata.items()) for field in schema.fields}
    assert about["ttft_ms"][b"unit"] == b"ms"
    assert about["sent_ns"][b"unit"] == b"ns"
    assert all(b"description" in metadata for metadata in about.values())


def test_each_stream_begins_at_the_beginning(run: runner_llm.Run) -> None:
    table = run.requests
    nanoarrow = pytest.importorskip("nanoarrow")
    first, second = nanoarrow.ArrayStream(table), nanoarrow.ArrayStream(table)
    rows = first.to_pylist()
    assert second.to_pylist() == rows == table.to_pylist() and rows


def test_a_failed_request_has_no_latency(tmp_path: Path) -> None:
    fault = 'kind = "http-error", status = 503, every = 2'
    with runner_llm.mock(ttft="5ms", itl="1ms", fault=fault) as engine:
        run = runner_llm.run(
            backend="vllm", base_url=engine.base_url, num_prompts=10, output_dir=tmp_path
        )
    rows = measured(run.requests)
    failed = [row for row in rows if row["outcome"] != "complete"]
    assert 3 <= len(failed) <= 7
    assert {row["outcome"] for row in failed} == {"http-status"}
    assert {row["ttft_ms"] for row in failed} == {None}
    assert all(row["ttft_ms"] for row in rows if row["outcome"] == "complete")


def test_a_damaged_run(run: runner_llm.Run, tmp_path: Path) -> None:
    damaged = shutil.copytree(run.path, tmp_path / "damaged")
    records = damaged / "records.jsonl.zst"
    records.write_bytes(records.read_bytes()[:-200])
    with pytest.warns(runner_llm.RunnerWarning, match="damaged: .* of 21 records"):
        assert len(runner_llm.Run.open(damaged).requests.to_pylist()) < 21
    records.unlink()
    with pytest.raises(runner_llm.InputError, match="records.jsonl.zst"):
        runner_llm.Run.open(damaged).requests.to_pylist()


def test_variables_do_not_change_what_is_read(
    run: runner_llm.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TABLE", "REPORT"):
        monkeypatch.setenv(f"RUNNER_{name}_OUTPUT", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("RUNNER_TABLE_FORMAT", "csv")
    monkeypatch.setenv("RUNNER_TABLE", "events")
    fresh = runner_llm.Run.open(run.path)
    assert len(measured(fresh.requests)) == 20
    assert "Serving Benchmark Result" in fresh.report()
    assert not (tmp_path / "elsewhere").exists()


def test_a_library_that_is_missing(
    run: runner_llm.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("nanoarrow.ipc", "nanoarrow", "pandas", "polars", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    for read, name in (
        (run.requests.__arrow_c_stream__, "nanoarrow"),
        (run.requests.to_pandas, "pandas"),
        (run.requests.to_polars, "polars"),
        (run.requests.to_arrow, "pyarrow"),
    ):
        with pytest.raises(ImportError, match=f"pip install {name}"):
            read()


def test_the_module_itself_needs_no_library() -> None:
    code = "import sys, runner_llm; print(sorted(set(sys.modules) & {'nanoarrow', 'polars'}))"
    source = str(Path(runner_llm.__file__).parent.parent)
    variables = {**os.environ, "PYTHONPATH": source}
    ended = subprocess.run(
        [sys.executable, "-c", code], env=variables, stdout=subprocess.PIPE, text=True, timeout=60
    )
    assert ended.stdout == "[]\n"


def test_the_file_goes_with_the_table(run: runner_llm.Run) -> None:
    table = runner_llm.Run.open(run.path).requests
    assert table.to_pylist()
    file = Path(table._path())
    assert file.exists()
    del table
    assert not file.exists()
