"""Breaks a lab in every way it must survive, and compares its page with the page of an undisturbed lab.

    python3 lab.py --runner target/debug/runner --vllm VENV/bin/vllm --model FOLDER
    python3 lab.py --runner target/debug/runner            (the mock engine: a rehearsal of a minute)

The lab varies `--max-num-seqs` and `--max-num-batched-tokens` of vLLM (of the mock engine: its slots and its speed)
over two scenarios, three times each. It runs twice. Nothing disturbs the first lab. In the second:
- the runner is killed (SIGKILL) while the first engine starts, and again in the middle of a run;
- the engine is killed in the middle of a run;
- the runner is interrupted, and another process takes the engine's port before it resumes.

Then:
- both pages have the same headings, tables, options and rows, apart from numbers and broken attempts;
- both journals have the same counted runs, each once;
- no engine is left, and the port is free.

Exits with 1 if a check fails.
"""

import argparse
import json
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

SCENARIO = """name = "{name}"
[dataset]
plugin = "datasets/random.wasm"
config = {{ input-len = {prompt}, output-len = {answer} }}
[load]
requests = {requests}
concurrency = 8
warmup = 1
"""

LAB = """name = "{name}"
scenarios = ["short.toml", "long.toml"]
strategy = "one-at-a-time"
repeats = 3
retries = 2
{tokenizer}
[objective]
maximize = "throughput.output-tokens-per-s"
subject-to = "requests.success-share >= 99.9%"

[[engines]]
name = "{engine}"
backend = "vllm"
launch = {launch}
version-command = {version}
port = {port}
ready-timeout = "15m"
stop-timeout = "60s"
[engines.options]
{options}
"""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Lab:
    """A lab in a folder of its own."""

    def __init__(self, asked, work, name):
        self.runner, self.port, self.folder = asked.runner, free_port(), work / name
        self.folder.mkdir()
        scale = 1 if asked.vllm else 4
        for scenario, prompt, answer in [("short", 32, 16), ("long", 96, 48)]:
            text = SCENARIO.format(name=scenario, prompt=prompt, answer=answer, requests=12 * scale)
            (self.folder / f"{scenario}.toml").write_text(text)
        if asked.vllm:
            launch = [asked.vllm, "serve", asked.model, "--host={host}", "--port={port}", "--max-model-len=512",
                      *asked.flag]
            version = [asked.vllm, "--version"]
            options = 'max-num-seqs = [1, 8]\nmax-num-batched-tokens = [512, 1024]'
            tokenizer = f'[set.tokenizer]\npath = {json.dumps(str(asked.model))}\n'
        else:
            launch = [str(pathlib.Path(asked.runner).resolve()), "mock", "--port", "{port}", "--ttft", "5ms"]
            version = [launch[0], "--version"]
            options = 'max-concurrency = [1, 8]\nitl = ["2ms", "4ms"]'
            tokenizer = ""
        lab = LAB.format(
            name="a lab that is broken and mended", tokenizer=tokenizer, launch=json.dumps(launch),
            version=json.dumps(version), port=self.port, options=options, engine="vllm" if asked.vllm else "mock",
        )
        (self.folder / "lab.toml").write_text(lab)
        self.log = open(self.folder / "runner.log", "a")

    def start(self):
        command = [str(pathlib.Path(self.runner).resolve()), "lab", "lab.toml", "--folder", "out", "--no-progress"]
        return subprocess.Popen(command, cwd=self.folder, stdout=self.log, stderr=subprocess.STDOUT)

    def finish(self):
        code = self.start().wait()
        return code

    def journal(self):
        path = self.folder / "out" / "journal.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        events = []
        for line in lines:
            try:
                events.append(json.loads(line))
            except json.JSONDecodeError:
                # The last line of a runner that was killed while it wrote.
                continue
        return events

    def count(self, kind):
        return sum(event["event"] == kind for event in self.journal())

    def wait_for(self, kind, more_than, process):
        """Waits until the journal has more events of a kind. The lab must not be over before."""
        while self.count(kind) <= more_than:
            if process.poll() is not None:
                sys.exit(f"the lab ended with {process.returncode} before it came to `{kind}`: see {self.log.name}")
            time.sleep(0.02)

    def engines(self):
        """The processes that hold the lab's port, or would."""
        found = subprocess.run(["pgrep", "-f", f"port[ =]{self.port}"], stdout=subprocess.PIPE, text=True)
        return [int(number) for number in found.stdout.split()]

    def page(self):
        return (self.folder / "out" / "lab.md").read_text()

    def counted(self):
        """The runs that count: trial, scenario and repeat."""
        finished = (event for event in self.journal() if event["event"] == "finished")
        counted = [event["run"] for event in finished if "measured" in event["outcome"]]
        return sorted(json.dumps(run | {"attempt": 0}, sort_keys=True) for run in counted)


def shape(page):
    """The constant part of a page: headings, and the labels of rows in the order of their names."""
    headings = [line for line in page.splitlines() if line.startswith("#")]
    rows = set()
    for line in page.splitlines():
        if line.startswith("|"):
            label = re.sub(r"[\d.,]+", "0", line.split("|")[1]).strip()
            if "attempt" not in line:
                rows.add(label)
    return headings, sorted(rows)


def break_it(lab):
    """Breaks a lab in every way, and lets it end."""
    process = lab.start()
    lab.wait_for("starting", 0, process)
    time.sleep(0.3)
    process.kill()
    process.wait()
    print("the runner was killed while an engine started")

    process = lab.start()
    lab.wait_for("running", 0, process)
    process.kill()
    process.wait()
    print("the runner was killed in a run")

    process = lab.start()
    lab.wait_for("running", lab.count("running"), process)
    for engine in lab.engines():
        subprocess.run(["kill", "-KILL", str(engine)])
    print("the engine was killed in a run")
    lab.wait_for("running", lab.count("running"), process)
    process.send_signal(signal.SIGINT)
    code = process.wait()
    assert code == 130, f"an interrupted lab ended with {code}"
    print("the runner was interrupted")

    with socket.socket() as holder:
        # Connections of the engine that has ended may linger; one that listens would still be in the way.
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", lab.port))
        holder.listen()
        code = lab.finish()
        assert code == 3, f"a lab whose port is taken ended with {code}"
    print("the port was taken")
    return lab.finish()


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runner", required=True, help="the runner's binary")
    options.add_argument("--vllm", help="vLLM's program; without it the mock engine is measured")
    options.add_argument("--model", help="the model's folder, for vLLM")
    options.add_argument("--flag", action="append", default=[], help="a further flag for vLLM; repeatable")
    options.add_argument("--work", type=pathlib.Path, help="where to keep both labs [default: a new folder]")
    asked = options.parse_args()
    work = asked.work or pathlib.Path(tempfile.mkdtemp(prefix="lab-"))
    print(f"both labs are in {work}")
    whole, broken = Lab(asked, work, "whole"), Lab(asked, work, "broken")
    code = whole.finish()
    assert code == 0, f"the lab that nothing disturbed ended with {code}"
    print("the lab that nothing disturbs is made")
    code = break_it(broken)
    assert code == 0, f"the lab that was broken ended with {code}"

    wrong = []
    headings, rows = zip(shape(whole.page()), shape(broken.page()))
    if headings[0] != headings[1]:
        wrong.append(f"headings differ:\n  {headings[0]}\n  {headings[1]}")
    if rows[0] != rows[1]:
        wrong.append(f"rows differ: {sorted(set(rows[0]) ^ set(rows[1]))}")
    counted = whole.counted(), broken.counted()
    for lab, runs in zip(("whole", "broken"), counted):
        if len(set(runs)) != len(runs):
            wrong.append(f"{lab}: a run counts twice")
    if counted[0] != counted[1]:
        wrong.append(f"other runs count: {sorted(set(counted[0]) ^ set(counted[1]))}")
    for lab in (whole, broken):
        if left := lab.engines():
            wrong.append(f"{lab.folder.name}: engines are left: {left}")
    for words in wrong:
        print(words)
    print("not the same" if wrong else f"the same page, of {len(counted[0])} runs")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
