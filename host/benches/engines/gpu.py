"""Checks power and energy against a real GPU: a small decoder in PyTorch serves the OpenAI API, and reads NVML for itself.

    python3 gpu.py --runner target/release/runner

Needs torch, aiohttp and nvidia-ml-py. The engine has random weights, one slot of its key-value cache for each stream, and
continuous batching; a token is a byte, so that the runner's counts can be compared to the last one. While it serves, a
thread of it reads the device's energy counter and power every 20 ms. Three loads follow: idle between few requests, a
steady rate, and as many streams as there are slots. Printed for each, side by side: tokens, TTFT and gaps of the runner's
result and of the engine's own log; joules of the runner's result, of the engine's reading of the counter over the same
time, and of its integral of the power. Exits with 1 if tokens differ, or energy by more than 2 %.
"""

import argparse
import asyncio
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import pynvml
import torch
import torch.nn.functional as F
from aiohttp import web

SLOTS, LENGTH = 64, 1024
WIDTH, HEADS, DEEP, INNER, VOCABULARY = 2048, 16, 16, 5504, 256


class Model:
    """A decoder of random weights with the computation of a Llama of this size, and random answers."""

    def __init__(self):
        def weights(*shape):
            return torch.randn(*shape, device="cuda", dtype=torch.bfloat16) * 0.02

        self.embedding = weights(VOCABULARY, WIDTH)
        self.layers = [(weights(WIDTH, 3 * WIDTH), weights(WIDTH, WIDTH), weights(WIDTH, 2 * INNER),
                        weights(INNER, WIDTH)) for _ in range(DEEP)]
        shape = (DEEP, 2, SLOTS, HEADS, LENGTH, WIDTH // HEADS)
        self.cache = torch.zeros(shape, device="cuda", dtype=torch.bfloat16)
        self.positions = torch.arange(LENGTH, device="cuda")

    def pass_through(self, tokens, slots, at, mask):
        """The next token of each slot. Tokens are [slots, tokens]; `at` is the position of each first one."""
        count, length = tokens.shape
        x = self.embedding[tokens]
        where = at[:, None] + self.positions[:length]
        for layer, (qkv, out, up, down) in enumerate(self.layers):
            y = F.rms_norm(x, (WIDTH,)) @ qkv
            q, k, v = y.view(count, length, 3, HEADS, -1).unbind(2)
            keys, values = self.cache[layer, 0], self.cache[layer, 1]
            keys[slots[:, None], :, where] = k
            values[slots[:, None], :, where] = v
            q = q.transpose(1, 2)
            y = F.scaled_dot_product_attention(q, keys[slots], values[slots], attn_mask=mask)
            x = x + y.transpose(1, 2).reshape(count, length, WIDTH) @ out
            gate, inner = (F.rms_norm(x, (WIDTH,)) @ up).chunk(2, dim=-1)
            x = x + (F.silu(gate) * inner) @ down
        return (x[:, -1] @ self.embedding.T).argmax(-1)

    @torch.inference_mode()
    def prefill(self, slot, prompt):
        tokens = torch.tensor([prompt], device="cuda")
        mask = self.positions[None, :] <= self.positions[: len(prompt), None]
        zero = torch.zeros(1, dtype=torch.long, device="cuda")
        return self.pass_through(tokens, torch.tensor([slot], device="cuda"), zero, mask[None, None]).item()

    @torch.inference_mode()
    def decode(self, last, slots, lengths):
        at = torch.tensor(lengths, device="cuda")
        mask = (self.positions[None, :] <= at[:, None])[:, None, None]
        tokens = torch.tensor(last, device="cuda")[:, None]
        return self.pass_through(tokens, torch.tensor(slots, device="cuda"), at, mask).tolist()


class Engine(threading.Thread):
    """Continuous batching: prompts that wait are read one by one, then all streams take a step."""

    def __init__(self):
        super().__init__(daemon=True)
        self.model = Model()
        self.waiting, self.running, self.free = [], [], list(range(SLOTS))
        self.changed = threading.Condition()

    def submit(self, prompt, wanted, emit):
        with self.changed:
            self.waiting.append({"prompt": prompt, "wanted": wanted, "emit": emit})
            self.changed.notify()

    def run(self):
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.running or self.waiting)
                new = [self.waiting.pop(0) for _ in range(min(len(self.waiting), len(self.free)))]
            for stream in new:
                stream["slot"] = self.free.pop()
                stream["length"] = len(stream["prompt"])
                self.tell(stream, self.model.prefill(stream["slot"], stream["prompt"]))
                self.running.append(stream)
            self.drop_finished()
            if not self.running:
                continue
            tokens = self.model.decode([s["last"] for s in self.running], [s["slot"] for s in self.running],
                                       [s["length"] for s in self.running])
            for stream, token in zip(self.running, tokens):
                stream["length"] += 1
                self.tell(stream, token)
            self.drop_finished()

    def tell(self, stream, token):
        stream["last"] = token
        stream["wanted"] -= 1
        stream["emit"](token, stream["wanted"] == 0)

    def drop_finished(self):
        with self.changed:
            self.free += [s["slot"] for s in self.running if s["wanted"] == 0]
        self.running = [s for s in self.running if s["wanted"]]


class Truth:
    """The engine's own record: tokens, instants, and the device's energy and power."""

    def __init__(self):
        pynvml.nvmlInit()
        self.device = pynvml.nvmlDeviceGetHandleByIndex(0)
        self.samples, self.requests = [], []
        threading.Thread(target=self.sample, daemon=True).start()

    def sample(self):
        while True:
            self.samples.append((time.monotonic(), pynvml.nvmlDeviceGetTotalEnergyConsumption(self.device) / 1e3,
                                 pynvml.nvmlDeviceGetPowerUsage(self.device) / 1e3))
            time.sleep(0.02)

    def figures(self):
        whole = [r for r in self.requests if r["sent"]]
        begin, end = min(r["came"] for r in whole), max(r["sent"][-1] for r in whole)
        ttft = [r["sent"][0] - r["came"] for r in whole]
        gaps = [b - a for r in whole for a, b in zip(r["sent"], r["sent"][1:])]
        inside = [s for s in self.samples if begin <= s[0] <= end]
        joined = sum((b[0] - a[0]) * (a[2] + b[2]) / 2 for a, b in zip(inside, inside[1:]))
        joined *= (end - begin) / (inside[-1][0] - inside[0][0])
        return {
            "requests": len(whole),
            "input": sum(r["input"] for r in whole),
            "output": sum(len(r["sent"]) for r in whole),
            "seconds": end - begin,
            "ttft-ms": 1e3 * statistics.fmean(ttft),
            "gap-ms": 1e3 * statistics.fmean(gaps),
            "joules": self.counter(end) - self.counter(begin),
            "joules-from-power": joined,
            "most-watts": max(s[2] for s in inside),
        }

    def counter(self, at):
        """The counter at this time, on the line between its neighbours."""
        after = next(i for i, s in enumerate(self.samples) if s[0] >= at)
        (t, a, _), (u, b, _) = self.samples[after - 1], self.samples[after]
        return a + (b - a) * (at - t) / (u - t)


def serve(engine, truth, port):
    async def completions(request):
        came = time.monotonic()
        asked = await request.json()
        prompt = list(asked["prompt"].encode())[: LENGTH // 2]
        wanted = min(int(asked["max_tokens"]), LENGTH - len(prompt))
        log = {"came": came, "input": len(prompt), "sent": []}
        truth.requests.append(log)
        loop, tokens = asyncio.get_running_loop(), asyncio.Queue()
        engine.submit(prompt, wanted, lambda *token: loop.call_soon_threadsafe(tokens.put_nowait, token))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)

        async def event(choices, **more):
            body = {"id": "1", "object": "text_completion", "model": "torch", "choices": choices, **more}
            await response.write(b"data: " + json.dumps(body).encode() + b"\n\n")

        while True:
            token, is_last = await tokens.get()
            await event([{"index": 0, "text": chr(32 + token % 95), "finish_reason": "length" if is_last else None}])
            log["sent"].append(time.monotonic())
            if is_last:
                break
        usage = {"prompt_tokens": len(prompt), "completion_tokens": wanted, "total_tokens": len(prompt) + wanted}
        await event([], usage=usage)
        await response.write(b"data: [DONE]\n\n")
        return response

    async def main():
        application = web.Application(client_max_size=1 << 24)
        application.router.add_post("/v1/completions", completions)
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        await asyncio.Event().wait()

    threading.Thread(target=lambda: asyncio.run(main()), daemon=True).start()


def measured(options, folder, load):
    command = [options.runner, "--backend", "openai", "--set", "backend.config.route=completions", "--model", "torch",
               "--base-url", f"http://127.0.0.1:{options.port}", "--dataset-name", "random",
               "--random-input-len", "256", "--random-output-len", "128", "--device-metrics", "nvml", "--warmup-requests", "0",
               "--json", *load]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if not done.stdout.startswith("{"):
        sys.exit(f"{' '.join(command)} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runner", required=True, type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--port", type=int, default=18123)
    options = parser.parse_args()
    engine, truth = Engine(), Truth()
    engine.model.decode([1] * SLOTS, list(range(SLOTS)), [LENGTH - 1] * SLOTS)
    engine.start()
    serve(engine, truth, options.port)
    time.sleep(1)
    print(torch.cuda.get_device_name(0), pynvml.nvmlSystemGetDriverVersion(), "torch", torch.__version__, flush=True)
    is_good = True
    loads = {
        "2 requests a second": ["--num-prompts", "30", "--request-rate", "2", "--arrival", "constant"],
        "20 requests a second": ["--num-prompts", "300", "--request-rate", "20"],
        f"{SLOTS} streams": ["--num-prompts", "640", "--max-concurrency", str(SLOTS)],
    }
    for name, load in loads.items():
        truth.requests.clear()
        with tempfile.TemporaryDirectory() as folder:
            result = measured(options, folder, load)
        time.sleep(0.1)
        own = truth.figures()
        devices, metrics = result["devices"], result["metrics"]
        pairs = {
            "requests": (result["requests"]["successful"], own["requests"]),
            "input tokens": (result["tokens"]["input"]["total"], own["input"]),
            "output tokens": (result["tokens"]["output"]["total"], own["output"]),
            "TTFT, mean, ms": (metrics["ttft"]["mean"], own["ttft-ms"]),
            "gap, mean, ms": (metrics["itl"]["mean"], own["gap-ms"]),
            "energy, J": (devices["energy-j"], own["joules"]),
            "energy by power, J": (devices["energy-j"], own["joules-from-power"]),
            "most power, W": (devices["max-power-w"], own["most-watts"]),
        }
        print(f"{name}: {own['seconds']:.1f} s, verdict {result['verdict']}: "
              f"{', '.join(finding['id'] for finding in result['findings'])}")
        for figure, (theirs, ours) in pairs.items():
            print(f"  {figure:20} runner {theirs:14.3f}   engine {ours:14.3f}   {100 * (theirs / ours - 1):+.2f} %")
        rate = devices.get("energy-per-million-output-tokens")
        print(f"  J for a million output tokens: {rate}; by the engine's log {own['joules'] / own['output'] * 1e6:.0f}",
              flush=True)
        exact = all(pairs[figure][0] == pairs[figure][1] for figure in ("requests", "input tokens", "output tokens"))
        is_good &= exact and abs(devices["energy-j"] / own["joules"] - 1) < 0.02
    sys.exit(not is_good)


if __name__ == "__main__":
    main()
