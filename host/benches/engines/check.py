"""Checks the runner's figures and classes against a real server.

    python3 check.py --runner target/debug/runner --engine http://127.0.0.1:8200 --backend vllm --set route=chat

Runs the runner several times, and looks at its records:
- its tokens of prompts and answers equal the server's (`/metrics`);
- the text of streamed answers equals the text of whole answers;
- a model that the server does not have is refused before the run;
- prompts longer than its context fail with this reason, and add nothing to the throughput;
- with --overload, more requests are sent at once than the server takes: refused requests are overloads;
- with --pid, the server is stopped in the middle of a run: cut answers are failures.

The server must be idle otherwise, and repeat its greedy answers, as vLLM does without a batch: requests are sent one at a
time. Each run gets the arguments after `--`. Exits with 1 if a check fails.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time


class Runs:
    """Runs of one backend against one server."""

    def __init__(self, asked):
        self.asked = asked
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="check-"))
        self.count = 0

    def start(self, *flags):
        """Runs the runner. Gives how it ended, and the folder of its runs."""
        self.count += 1
        folder = self.folder / str(self.count)
        command = [
            self.asked.runner, "run", "--backend", self.asked.backend, "--base-url", self.asked.engine,
            "--dataset-name", "random", "--random-input-len", "40", "--random-output-len", "12", "--num-prompts", "12",
            "--warmup-requests", "0", "--concurrency", "1", "--temperature", "0", "--json", "--output-dir", str(folder),
        ]
        for key in self.asked.set or []:
            command += ["--set", f"backend.config.{key}"]
        if self.asked.tokenizer:
            command += ["--tokenizer", self.asked.tokenizer]
        command += [flag for flag in self.asked.runner_flags if flag != "--"]
        ran = subprocess.run([*command, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return ran, folder

    def run(self, *flags):
        """A run. Gives its summary, and its measured records in order."""
        ran, folder = self.start(*flags)
        try:
            summary = json.loads(ran.stdout)
        except json.JSONDecodeError:
            sys.exit(f"the run ended with {ran.returncode} and no summary:\n{ran.stderr}")
        run = next(folder.iterdir())
        report = [self.asked.runner, "report", str(run), "--format", "jsonl"]
        lines = subprocess.run(report, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
        records = [json.loads(line) for line in lines]
        measured = [record for record in records if record["phase"] == "measure"]
        return summary, sorted(measured, key=lambda record: record["index"])


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runner", required=True, help="the runner's binary")
    options.add_argument("--engine", required=True, help="the server's address")
    options.add_argument("--backend", required=True, help="the backend to check")
    options.add_argument("--set", action="append", metavar="KEY=VALUE", help="a key of the backend's configuration")
    options.add_argument("--tokenizer", help="the model's tokenizer")
    options.add_argument("--context", type=int, default=2048, help="the server's longest context")
    options.add_argument("--no-metrics", action="store_true", help="the server or the backend has no metrics")
    options.add_argument("--overload", type=int, metavar="N", help="requests at once that are more than the server takes")
    options.add_argument("--pid", type=int, help="the server's process, which is killed at the end")
    options.add_argument("--kill-after", type=float, default=6, metavar="SECONDS", help="when in the last run it is killed")
    options.add_argument("runner_flags", nargs=argparse.REMAINDER, metavar="-- FLAG ...", help="further flags of the runner")
    asked = options.parse_args()
    runs, faults = Runs(asked), []

    def check(holds, words):
        print(("ok    " if holds else "FAULT ") + words)
        if not holds:
            faults.append(words)

    metrics = [] if asked.no_metrics else ["--server-metrics"]
    summary, streamed = runs.run(*metrics)
    successful = summary["requests"]["successful"]
    check(successful == 12, f"{successful} of 12 requests are answered")
    tokens = summary["tokens"]
    print(f"      {tokens['input']['total']} input and {tokens['output']['total']} output tokens")
    if metrics:
        finding = [one["id"] for one in summary["findings"] if one["id"] == "server-counts-disagree"]
        check(not finding and summary.get("server"), "the server's own totals are the runner's")
    _, whole = runs.run("--disable-stream")
    same = sum(one["output"] == other["output"] for one, other in zip(streamed, whole))
    check(same == 12 and len(whole) == 12, f"{same} of 12 streamed texts equal whole replies")

    def refused(what, reason, *flags):
        summary, records = runs.run(*flags)
        reasons = {record["outcome"].get("reason") for record in records}
        check(reasons == {reason}, f"{what}: the reason is {reasons}")
        counted = summary["throughput"].get("output-tokens-per-s")
        check(not counted, f"{what}: {counted} output tokens a second are counted")

    ran, _ = runs.start("--model", "no-such-model")
    check(ran.returncode == 3 and "no-such-model" in ran.stderr, "a model that is not there is refused before the run")
    refused("a prompt beyond the context", "too-long", "--set", f"dataset.config.input-len={2 * asked.context}")


    def only_whole_answers(what, summary, records):
        whole = [record for record in records if record["outcome"]["class"] == "complete"]
        counted = sum((record.get("usage") or {}).get("output-tokens") or 0 for record in whole)
        total = summary["tokens"]["output"].get("total") or 0
        check(total == counted, f"{what}: {total} tokens are counted, {counted} are of {len(whole)} whole answers")

    if asked.overload:
        several = ["--set", f"load.requests={4 * asked.overload}", "--set", f"load.concurrency={asked.overload}"]
        summary, records = runs.run(*several)
        failed = [record["outcome"] for record in records if record["outcome"]["class"] != "complete"]
        ways = sorted({f"{outcome['class']}, {outcome.get('reason')}" for outcome in failed})
        reasons = {outcome.get("reason") for outcome in failed}
        check(reasons == {"overloaded"}, f"overload: {len(failed)} of {len(records)} failed, as {ways}")
        only_whole_answers("overload", summary, records)
    if asked.pid:
        def kill():
            time.sleep(asked.kill_after)
            os.kill(asked.pid, signal.SIGKILL)

        threading.Thread(target=kill, daemon=True).start()
        summary, records = runs.run("--set", "load.requests=2000", "--set", "dataset.config.output-len=24", "--set", "load.concurrency=8",
                                    "--request-timeout", "30s")
        failed = [record["outcome"] for record in records if record["outcome"]["class"] != "complete"]
        classes = sorted({outcome["class"] for outcome in failed})
        check(len(failed) > 0, f"the server was killed: {len(failed)} of {len(records)} failed, as {classes}")
        only_whole_answers("the server was killed", summary, records)
    for fault in faults:
        print("FAULT", fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
