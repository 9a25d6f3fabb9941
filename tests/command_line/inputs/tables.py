"""Reads exported tables with pyarrow and holds them against the records and the summary.

Takes its files from the current folder; prints `the same`, or fails.
"""

import json

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq


def tables(name):
    with pa.OSFile(f"{name}.arrows") as file:
        stream = pa.ipc.open_stream(file).read_all()
    parquet = pq.read_table(f"{name}.parquet")
    for other in stream, feather.read_table(f"{name}.arrow"):
        assert other.equals(parquet), name
        assert other.schema.equals(parquet.schema, check_metadata=False), name
        for mine, theirs in zip(other.schema, parquet.schema):
            assert mine.metadata[b"unit"] == theirs.metadata[b"unit"], mine
            assert mine.metadata[b"description"] == theirs.metadata[b"description"], mine
    return parquet


def near(found, expected):
    assert (found is None) == (expected is None), (found, expected)
    assert found is None or abs(found - expected) < 1e-9, (found, expected)


records = [json.loads(line) for line in open("records.jsonl")]
with open("summary.json") as file:
    summary = json.load(file)

requests = tables("requests")
assert json.loads(requests.schema.metadata[b"runs"])[0]["verdict"] == summary["verdict"]
rows = requests.to_pylist()
assert len(rows) == len(records)
gaps = []
for row, record in zip(rows, records):
    events = list(zip(record["events"]["at"], record["events"]["kind"], record["events"]["bytes"]))
    outputs = [(at, size) for at, kind, size in events if kind in "trcvk"]
    pieces = [at for at, size in outputs if size > 0]
    complete = record["outcome"]["class"] == "complete"
    assert row["outcome"] == record["outcome"]["class"]
    assert row["due_ns"] == record["due"] and row["sent_ns"] == record.get("sent")
    assert row["event_ns"] == ([at for at, _ in outputs] if events else None)
    near(row["ttft_ms"], (pieces[0] - record["sent"]) / 1e6 if complete else None)
    near(row["e2e_ms"], (events[-1][0] - record["sent"]) / 1e6 if complete else None)
    if complete and record["phase"] == "measure":
        gaps += [(b - a) / 1e6 for a, b in zip(pieces, pieces[1:])]
        n = record["usage"]["output-tokens"]
        assert row["output_tokens"] == n
        near(row["tpot_ms"], (events[-1][0] - pieces[0]) / 1e6 / (n - 1))

found = [
    row["itl_ms"]
    for row in tables("events").to_pylist()
    if row["phase"] == "measure" and row["itl_ms"] is not None
]
assert len(found) == len(gaps)
for one, other in zip(found, gaps):
    near(one, other)

figures = {row["name"]: row for row in tables("summary").to_pylist()}
near(figures["ttft.mean"]["value"], summary["metrics"]["ttft"]["mean"])
assert figures["ttft.mean"]["unit"] == "ms"
failed = sum(row["outcome"] != "complete" and row["phase"] == "measure" for row in rows)
assert figures["requests.failed"]["value"] == failed == 2

# The area below the output tokens over time is the number of tokens.
series = tables("series").to_pylist()
tokens = sum(
    row["value"] * (row["end_ns"] - row["start_ns"]) / 1e9
    for row in series
    if row["series"] == "output-tokens"
)
assert abs(tokens - figures["tokens.output"]["value"]) < 1e-3, tokens

print("the same")
