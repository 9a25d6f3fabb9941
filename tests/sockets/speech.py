"""A server of speech: PCM in events, and WAV as Python's `wave` writes it, cut anywhere. Arguments: port, log file.

Every tenth request fails in each of three ways: refused, an error inside the stream, a connection cut in the middle."""

import base64
import io
import json
import random
import sys
import threading
import wave
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

RATES = {"pcm": 24000, "wav": 22050}
FAULTS = {3: "refused", 6: "failed", 9: "cut"}
lock = threading.Lock()
asked = 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.whole(200, json.dumps({"object": "list", "data": [{"id": "m"}]}).encode(), "application/json")

    def do_POST(self):
        global asked
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with lock:
            number, asked = asked, asked + 1
        dice = random.Random(number)
        rate = RATES[body["response_format"]]
        frames = dice.randrange(rate // 10, rate)
        samples = bytes(2 * frames)
        fault = FAULTS.get(number % 10)
        is_streamed = "stream_format" in body
        is_raw = body.get("stream_format") == "audio"
        if fault == "failed" and (is_raw or not is_streamed):
            fault = None
        if body["response_format"] == "wav":
            file = io.BytesIO()
            with wave.open(file, "wb") as out:
                out.setnchannels(1)
                out.setsampwidth(2)
                out.setframerate(rate)
                out.writeframes(samples)
            samples = file.getvalue()
        log(text=body["input"], seconds=frames / rate, fault=fault)
        if fault == "refused":
            self.whole(429, b'{"error": {"message": "too many"}}', "application/json")
        elif not is_streamed and fault is None:
            self.whole(200, samples, "audio/wav")
        else:
            self.send_response(200)
            self.send_header("content-type", "audio/wav" if is_raw else "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            self.stream(samples, is_raw, fault, dice)

    def stream(self, samples, is_raw, fault, dice):
        at = 0
        while at < len(samples):
            if fault and at > len(samples) // 2:
                break
            size = dice.randrange(1, 9000)
            piece = samples[at : at + size]
            at += size
            if not is_raw:
                event = {"type": "speech.audio.delta", "audio": base64.b64encode(piece).decode()}
                piece = f"data: {json.dumps(event)}\n\n".encode()
            self.chunk(piece)
        if fault == "failed":
            self.chunk(b'data: {"type": "error", "error": {"message": "out of memory"}}\n\n')
        elif fault == "cut":
            self.close_connection = True
            return
        elif not is_raw:
            done = {"type": "speech.audio.done", "usage": {"input_tokens": 5, "output_tokens": 7, "total_tokens": 12}}
            self.chunk(f"data: {json.dumps(done)}\n\n".encode())
        self.wfile.write(b"0\r\n\r\n")

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def whole(self, status, body, kind):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def log(**line):
    with lock, open(sys.argv[2], "a") as out:
        out.write(json.dumps(line) + "\n")


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
