"""Checks the runner's requests in conversations, and its account of the prefix cache, against a real vLLM.

    vllm serve MODEL --enable-prefix-caching --enable-prompt-tokens-details --block-size 32 --port 8200
    python3 sessions.py --runner target/debug/runner --engine http://127.0.0.1:8200 --tokenizer MODEL --page-size 32

A proxy between the two keeps every request and reply. Then, for each request of a conversation:
- its messages are the user's, with the server's streamed answers in between, to the character;
- the server's cached tokens are the tokens of earlier whole pages, to one page.
And the runner's own account of the cache equals the account of this script.

Exits with 1 if a check fails. The server must not have seen these prompts before: they begin with a text that
is new in each run.
"""

import argparse
import http.server
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

WORDS = "the cache of an engine holds what it has read before so that it need not read it again".split()


def conversations(number, turns, stamp):
    """Conversations of questions of different lengths. The answers on record must not be sent."""
    for chat in range(number):
        texts = [
            f"{stamp} chat {chat} turn {turn}: " + " ".join(WORDS[: 5 + (7 * chat + 3 * turn) % len(WORDS)]) * (2 + turn % 3)
            for turn in range(turns)
        ]
        messages = []
        for text in texts:
            messages += [{"role": "user", "content": text}, {"role": "assistant", "content": "on record"}]
        yield {"id": f"chat-{chat}", "messages": messages}


def proxy(engine):
    """A server in front of the engine. Gives its address, and the list in which it keeps what passed."""
    kept, lock = [], threading.Lock()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_GET(self):
            self.forward(None)

        def do_POST(self):
            self.forward(self.rfile.read(int(self.headers.get("content-length", 0))))

        def forward(self, body):
            headers = {"content-type": "application/json"}
            request = urllib.request.Request(engine + self.path, data=body, headers=headers, method=self.command)
            with lock:
                entry = {"path": self.path, "request": body}
                kept.append(entry)
            with urllib.request.urlopen(request) as reply:
                entry["reply"], kind = reply.read(), reply.headers.get("content-type")
            self.send_response(200)
            self.send_header("content-type", kind or "application/json")
            self.send_header("content-length", str(len(entry["reply"])))
            self.end_headers()
            self.wfile.write(entry["reply"])

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}", kept


def answer_of(reply):
    """The text that a stream carried, and the usage that it reported."""
    text, usage = "", {}
    for line in reply.decode().splitlines():
        if line.startswith("data: ") and line != "data: [DONE]":
            chunk = json.loads(line[6:])
            usage = chunk.get("usage") or usage
            for choice in chunk["choices"]:
                text += choice["delta"].get("content") or ""
    return text, usage


def tokens_of(engine, model, messages):
    body = json.dumps({"model": model, "messages": messages, "add_generation_prompt": True}).encode()
    request = urllib.request.Request(engine + "/tokenize", data=body, headers={"content-type": "application/json"})
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)["tokens"]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runner", required=True, help="the runner's binary")
    options.add_argument("--engine", required=True, help="the server's address")
    options.add_argument("--tokenizer", required=True, help="the model's tokenizer, for the runner")
    options.add_argument("--page-size", type=int, default=16, help="the server's --block-size")
    options.add_argument("--sessions", type=int, default=4)
    options.add_argument("--turns", type=int, default=4)
    asked = options.parse_args()
    # One conversation at a time, so that the order in which prompts reach the cache is the order of this list.
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sessions-"))
    chats = list(conversations(asked.sessions, asked.turns, f"run {time.time_ns()}"))
    (folder / "chats.jsonl").write_text("".join(json.dumps(chat) + "\n" for chat in chats))
    address, kept = proxy(asked.engine)
    command = [
        asked.runner, "run", "--backend", "vllm", "--base-url", address, "--set", "backend.config.route=chat",
        "--dataset-name", "conversation", "--dataset-path", folder / "chats.jsonl",
        "--set", "dataset.config.format=messages", "--set", "dataset.config.output-len=24",
        "--tokenizer", asked.tokenizer, "--sessions", str(asked.sessions), "--concurrency", "1",
        "--warmup-requests", "0", "--cache-report", "--page-size", str(asked.page_size),
        "--json", "--output-dir", folder / "runs",
    ]
    ran = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    result = json.loads(ran.stdout)

    faults, exact, worst, reusable, seen = [], 0, 0, 0, set()
    questions = {chat["id"]: chat["messages"][::2] for chat in chats}
    asked_for = {message["content"]: chat for chat in chats for message in questions[chat["id"]]}
    answers = {}
    requests = [entry for entry in kept if entry["path"].endswith("/chat/completions")]
    for entry in requests:
        request = json.loads(entry["request"])
        messages = request["messages"]
        chat = asked_for[messages[-1]["content"]]
        given = answers.setdefault(chat["id"], [])
        expected = []
        for turn, message in enumerate(questions[chat["id"]][: len(given) + 1]):
            expected.append(message)
            if turn < len(given):
                expected.append({"role": "assistant", "content": given[turn]})
        exact += messages == expected
        if messages != expected:
            faults.append(f"{chat['id']}, turn {len(given)}: sent {messages}, expected {expected}")
        text, usage = answer_of(entry["reply"])
        given.append(text)
        tokens = tokens_of(asked.engine, request["model"], messages)
        page, hit = asked.page_size, 0
        pages = [tuple(tokens[: end]) for end in range(page, len(tokens) + 1, page)]
        for prefix in pages[: (len(tokens) - 1) // page]:
            if prefix not in seen:
                break
            hit = len(prefix)
        seen.update(pages)
        reusable += hit
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
        worst = max(worst, abs(cached - hit))
        if abs(cached - hit) > page:
            faults.append(f"{chat['id']}, turn {len(given) - 1}: {cached} tokens cached, {hit} expected")
    expected = asked.sessions * asked.turns
    if len(requests) != expected:
        faults.append(f"{len(requests)} requests were sent, not {expected}")
    own = result.get("cache") or {}
    if own.get("reusable") != reusable:
        faults.append(f"the runner counts {own.get('reusable')} reusable tokens, not {reusable}")
    print(f"{exact} of {len(requests)} requests hold exactly the answers that the server gave")
    print(f"cached tokens differ by at most {worst} from whole pages of {asked.page_size} sent before")
    print(f"the runner counts {own.get('reusable')} reusable tokens, this script {reusable}")
    for fault in faults:
        print("FAULT", fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
