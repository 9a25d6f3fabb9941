"""Shows how often the intervals of one run hold the truth, against an engine in real time: `runner mock --batching`.

    python3 intervals.py --runner target/debug/runner [--runs 40] [--cell NAME]... [--json FILE]

`cargo bench --bench statistics` asks the same of a laboratory whose engine is computed. This asks it of processes,
sockets and clocks, which share no code with the laboratory. There are three cells: an open loop at 0.7 of capacity, a
closed loop of 64 users with fixed lengths, and a burst of lengths as in ShareGPT. Each is run twice RUNS times:
- with other requests each time, for the interval that the run states for other requests of this kind;
- with the same requests and another random seed of the engine, for the interval that it states for these requests.

The truth is the mean over the runs, which is itself known within its scatter divided by the root of RUNS. It prints,
for each cell and figure, the share of runs whose interval holds the truth, the share of runs that have an interval, its
half width, and how many times as wide that is as it had to be (1.96 standard deviations over the runs); then how many
runs were called overloaded or drifting, which none of them is. Exits with 1 if a share of 90 % is refuted by the exact
binomial test at 1 % in a cell, or if a run has one of these findings.
"""

import argparse
import concurrent.futures
import json
import math
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

LENGTHS = """input-len = {{ distribution = "{shape}", {input} }}
output-len = {{ distribution = "{shape}", {output} }}"""
USUAL = LENGTHS.format(shape="lognormal", input="median = 200, sigma = 0.7, max = 2000",
                       output="median = 40, sigma = 0.7, max = 400")
FIXED = "input-len = 1000\noutput-len = 100"
SHAREGPT = LENGTHS.format(shape="lognormal", input="median = 107, sigma = 1.2, max = 4000",
                          output="median = 58, sigma = 1.0, max = 1000")
ENGINE = "slots=32,step=5ms,request=100us,prompt-token=10us"
FREE = "slots=1024,step=5ms,request=20us,prompt-token=10us,chunk=8192"

# Name, engine, lengths, load. Capacity of the first: 32 slots take 8.2 ms a step, so an answer of 51 tokens and a
# prompt of 256 take 51 * 8.2 / 32 + 256 * 0.01 = 15.6 ms of the engine, which is 64 a second.
CELLS = {
    "open loop, 0.7 of capacity": (ENGINE, USUAL, 'rate = 45.0\narrival = "poisson"\nrequests = 1000'),
    "closed loop, 64 users, fixed lengths": (ENGINE, FIXED, "concurrency = 64\nrequests = 500"),
    "ShareGPT, all at once, free slots": (FREE, SHAREGPT, "requests = 500"),
}
SCENARIO = """name = "intervals"
[target]
base-url = "http://127.0.0.1:{port}"
[backend]
plugin = "backends/vllm.wasm"
[dataset]
plugin = "datasets/random.wasm"
[dataset.config]
{lengths}
[load]
{load}
warmup = 0
seed = {seed}
"""
METRICS = {"ttft": "TTFT", "tpot": "TPOT", "e2e": "E2E"}
FALSE = ("overloaded", "drift")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def run(runner, engine, lengths, load, seed, folder):
    """The summary of one run, against an engine of its own."""
    port = free_port()
    server = subprocess.Popen([runner, "mock", "--port", str(port), "--batching", engine, "--seed", str(folder[1])],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.05)
        place = pathlib.Path(folder[0]) / f"{seed}-{folder[1]}"
        place.mkdir()
        (place / "a.toml").write_text(SCENARIO.format(port=port, lengths=lengths, load=load, seed=seed))
        said = subprocess.run([runner, "run", str(place / "a.toml"), "--output-dir", str(place / "out"),
                               "--allow-invalid", "--no-progress"], capture_output=True, text=True)
        found = list(place.glob("out/*/summary.json"))
        if not found:
            raise SystemExit(f"a run left no summary:\n{said.stdout}{said.stderr}")
        return json.loads(found[0].read_text())
    finally:
        server.terminate()
        server.wait()


def figures(summary, same):
    """Name, figure and interval for the tables; the interval is None if the run states none."""
    for key, name in METRICS.items():
        metric = summary["metrics"][key]
        confidence = metric.get("confidence", {})
        if same:
            confidence = confidence.get("same-requests", {})
        for middle in ("mean", "median"):
            yield f"{name}, {middle}", metric[middle], confidence.get(middle)
    throughput = summary["throughput"]
    confidence = throughput.get("confidence", {}).get("same-requests" if same else "other-requests", {})
    for key, name in (("requests-per-s", "Requests/s"), ("output-tokens-per-s", "Output tokens/s")):
        yield name, throughput[key], confidence.get(key)


def at_most(held, of, share):
    """Probability that at most `held` of `of` hold the truth if a share of `share` does."""
    return sum(math.comb(of, k) * share**k * (1 - share) ** (of - k) for k in range(held + 1))


def table(name, kind, summaries, same):
    """Prints one table; says whether a share of 90 % is refuted, and returns its rows."""
    rows, refuted = [], False
    by_name = {}
    for summary in summaries:
        for figure, value, interval in figures(summary, same):
            by_name.setdefault(figure, []).append((value, interval))
    print(f"\n{name}: {kind}, {len(summaries)} runs")
    for figure, seen in by_name.items():
        values = [value for value, _ in seen]
        truth, scatter = statistics.mean(values), statistics.stdev(values)
        stated = [interval for _, interval in seen if interval]
        held = sum((i.get("low") or -math.inf) <= truth <= (i.get("high") or math.inf) for i in stated)
        ended = [i for i in stated if i.get("low") is not None and i.get("high") is not None]
        half = statistics.median((i["high"] - i["low"]) / 2 for i in ended) if ended else math.nan
        bad = bool(stated) and at_most(held, len(stated), 0.9) < 0.01
        refuted |= bad
        row = {"figure": figure, "truth": truth, "scatter": scatter / truth, "given": len(stated), "held": held,
               "half width": half / truth, "times": half / (1.96 * scatter) if scatter else math.nan}
        rows.append(row)
        print(f"  {figure:18} {truth:10.3f}  held {held:3} of {len(stated):3} given  ± {row['half width']:7.2%}"
              f"  × {row['times']:.1f}  scatter {row['scatter']:.2%}{'  ✗' if bad else ''}")
    return rows, refuted


def cell(arguments, name, folder):
    engine, lengths, load = CELLS[name]
    other, same = [], []
    for seed in range(arguments.runs):
        other.append(run(arguments.runner, engine, lengths, load, seed, (folder, seed)))
        same.append(run(arguments.runner, engine, lengths, load, 1000, (folder, 5000 + seed)))
    return name, other, same


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runner", required=True)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--cell", action="append", choices=list(CELLS))
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    wrong, kept = False, {}
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(len(CELLS)) as pool:
        under_way = []
        for number, name in enumerate(arguments.cell or CELLS):
            place = pathlib.Path(folder) / str(number)
            place.mkdir()
            under_way.append(pool.submit(cell, arguments, name, place))
        for ended in under_way:
            name, other, same = ended.result()
            rows, bad = table(name, "other requests", other, False)
            wrong |= bad
            again, bad = table(name, "these requests again", same, True)
            wrong |= bad
            kept[name] = {"other requests": rows, "these requests again": again}
            for finding in FALSE:
                count = sum(any(f["id"] == finding for f in s["findings"]) for s in other + same)
                print(f"  {finding}: {count} of {len(other) + len(same)} runs")
                kept[name][finding] = count
                wrong |= count > 0
    if arguments.json:
        arguments.json.write_text(json.dumps(kept, indent=2, allow_nan=True))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
