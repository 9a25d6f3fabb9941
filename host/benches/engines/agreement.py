"""Shows whether an option of a real vLLM changes its answers, judged against how much the answers of repeats differ.

    python3 agreement.py --runner target/debug/runner --vllm VENV/bin/vllm --model FOLDER [-- FLAG...]

`install-vllm.sh` installs the engine and the model. What follows `--` goes to `vllm serve`. The same questions are asked
greedily, all at once:
- of a server with `--max-num-seqs 64`: the baseline, and three repeats of it, which are its noise floor;
- of a server with `--max-num-seqs 2`: the option. With other batches the sums of the same numbers are added up in
  another order;
- of the first server with answers that are made to differ (`--temperature 1`): a change that must be seen.

It prints what `runner agreement` says of a repeat, of the option, and of the change. Exits with 1 if the change is not
seen as one, or if a repeat is.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

SCENARIO = """name = "{name}"
[target]
base-url = "http://127.0.0.1:{port}"
[dataset]
plugin = "datasets/qa.wasm"
[dataset.config]
task = "gsm8k"
shots = 0
[dataset.files]
data = "questions.jsonl"
[request]
temperature = {temperature}
output-tokens = 64
[load]
requests = {questions}
warmup = 0
"""
READY = 300


def questions(path, count):
    """Questions in the form of GSM8K, from a random seed, so that nothing has to be fetched."""
    drawn = random.Random(7)
    people = ["Ada", "Ben", "Chen", "Dana", "Eli", "Fay", "Gus", "Hana"]
    things = ["apples", "books", "coins", "stamps", "pencils", "tickets"]
    with open(path, "w") as file:
        for _ in range(count):
            a, b, c = drawn.randint(2, 99), drawn.randint(2, 40), drawn.randint(2, 9)
            who, other = drawn.sample(people, 2)
            thing = drawn.choice(things)
            question = (f"{who} has {a} {thing}. {other} gives {who} {b} more {thing} in each of {c} weeks. "
                        f"How many {thing} does {who} have then?")
            row = {"question": question, "answer": f"{a} + {b} * {c} = {a + b * c}\n#### {a + b * c}"}
            file.write(json.dumps(row) + "\n")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextlib.contextmanager
def served(asked, most):
    port = free_port()
    command = [asked.vllm, "serve", asked.model, "--host", "127.0.0.1", "--port", str(port),
               "--max-model-len", "512", "--max-num-seqs", str(most), *asked.flag]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1",
                                "DO_NOT_TRACK": "1"}
    log = open(asked.work / f"vllm-{most}.log", "w")
    server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        for _ in range(READY):
            if server.poll() is not None:
                sys.exit(f"vLLM ended before it was ready: {log.name}")
            with contextlib.suppress(OSError, urllib.error.URLError):
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2):
                    break
            time.sleep(1)
        else:
            sys.exit(f"vLLM was not ready after {READY} s: {log.name}")
        yield port
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()


def measured(asked, name, port, temperature=0):
    scenario = asked.work / f"{name}.toml"
    text = SCENARIO.format(name=name, port=port, temperature=temperature, questions=asked.questions)
    scenario.write_text(text)
    folder = asked.work / name
    command = [asked.runner, "run", str(scenario), "--backend", "vllm", "--plugin", "scorers/final-number.wasm", "--no-progress",
               "--tokenizer", asked.model, "--output-dir", str(folder), "--cache", "keep"]
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode:
        sys.exit(f"{name}: {ended.stdout}{ended.stderr}")
    return next(folder.iterdir())


def agreement(asked, run, baseline, floor):
    command = [asked.runner, "agreement", str(run), "--baseline", str(baseline),
               "--floor", ",".join(map(str, floor))]
    print(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    as_json = subprocess.run([*command, "--format", "json"], capture_output=True, text=True, check=True)
    return json.loads(as_json.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runner", required=True)
    parser.add_argument("--vllm", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("flag", nargs="*")
    asked = parser.parse_args()
    asked.runner = str(pathlib.Path(asked.runner).resolve())
    with tempfile.TemporaryDirectory() as work:
        asked.work = pathlib.Path(work)
        questions(asked.work / "questions.jsonl", asked.questions)
        with served(asked, 64) as port:
            base, *repeats = [measured(asked, f"many-{number}", port) for number in range(4)]
            other = measured(asked, "sampled", port, temperature=1)
        with served(asked, 2) as port:
            few = measured(asked, "few", port)
        *floor, repeat = repeats
        verdicts = {}
        for name, run in [("a repeat", repeat), ("--max-num-seqs 2", few), ("--temperature 1", other)]:
            print(f"== {name} ==")
            verdicts[name] = agreement(asked, run, base, floor)
        judged = {name: agreed["answers"]["floor"]["judgement"] for name, agreed in verdicts.items()}
        print(json.dumps(judged))
        sys.exit(judged["a repeat"] != "cleared" or judged["--temperature 1"] != "changed")


if __name__ == "__main__":
    main()
