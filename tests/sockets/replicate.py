"""Plays Replicate's API: an API that creates predictions and says how far they are, and a host of
its own that streams their output. Writes a line of JSON for each request as it is answered.
Predictions are numbered as they are created; of each ten, six go wrong or are odd, in the order of
FAULTS. With `endless`, no prediction ever ends.

    python3 replicate.py LOG [endless]

Prints the ports of the two, in one line.
"""

import hashlib
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FAULTS = ["refused", "error", "late", "failed", "cut", "never"]
WORDS = ["Ein", " schöner", " Tag", ",\n", "\n", " 日本", "語", "!"]


class Predictions:
    def __init__(self, log, endless):
        self.log = open(log, "w", encoding="utf-8")
        self.lock = threading.Lock()
        self.endless = endless
        self.known = {}
        self.count = 0
        self.connections = 0

    def create(self):
        with self.lock:
            number = self.count
            self.count += 1
            fault = FAULTS[number % 10] if number % 10 < len(FAULTS) and not self.endless else None
            job = {"number": number, "fault": fault, "looks": 0, "at": time.monotonic()}
            job["pieces"] = [f"{number}:"] + WORDS[: 2 + number % 7]
            self.known[f"p{number}"] = job
            return f"p{number}", job

    def write(self, entry):
        with self.lock:
            self.log.write(json.dumps(entry) + "\n")
            self.log.flush()

    def connection(self):
        with self.lock:
            self.connections += 1
            return self.connections


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        self.number = self.server.predictions.connection()

    def log_message(self, *_):
        pass

    def told(self, name, step, status):
        """Logs a request of this prediction, which is about to be answered."""
        job = self.server.predictions.known[name]
        self.server.predictions.write(
            {
                "prediction": job["number"],
                "digest": job.get("digest"),
                "step": step,
                "status": status,
                "fault": job["fault"],
                "pieces": job["pieces"],
                "connection": self.number,
                "headers": {name.lower(): value for name, value in self.headers.items()},
            }
        )

    def reply(self, status, value, cut=False):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if cut else body)
        self.close_connection = self.close_connection or cut

    def state(self, name, status, **more):
        api, streams = self.server.origins
        urls = {"get": f"{api}/v1/predictions/{name}", "cancel": f"{api}/v1/predictions/{name}/cancel"}
        if self.server.predictions.known[name].get("streams"):
            urls["stream"] = f"{streams}/v1/streams/{name}"
        state = {"id": name, "status": status, "output": None, "error": None, "urls": urls}
        return {**state, **more}

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        name, job = self.server.predictions.create()
        asked = b"\0".join([b"POST", self.path.encode(), body])
        job["digest"] = hashlib.sha256(asked).hexdigest()[:16]
        job["streams"] = json.loads(body)["stream"]
        refused = {"refused": 429, "error": 500}.get(job["fault"])
        self.told(name, "create", refused or 201)
        if refused:
            self.reply(refused, {"detail": f"request {job['number']} is refused", "status": refused})
        else:
            self.reply(201, self.state(name, "starting"))

    def do_GET(self):
        name = self.path.rsplit("/", 1)[-1]
        job = self.server.predictions.known[name]
        job["looks"] += 1
        if "/streams/" in self.path:
            self.stream(name, job)
        else:
            self.look(name, job)

    def look(self, name, job):
        looks, fault = job["looks"], job["fault"]
        late = fault == "late" and looks <= 2
        status = 404 if late else 503 if fault == "never" and looks > 1 else 200
        self.told(name, "look", status)
        if status != 200:
            self.reply(status, {"detail": "The requested resource could not be found."})
        elif self.server.predictions.endless or looks <= 1 + job["number"] % 3:
            self.reply(200, self.state(name, "processing"))
        elif fault == "failed":
            self.reply(200, self.state(name, "failed", error="out of luck"))
        else:
            metrics = {"input_token_count": 7, "output_token_count": len(job["pieces"])}
            metrics["time_to_first_token"] = 0.25
            output = job["pieces"] if job["number"] % 2 else "".join(job["pieces"])
            state = self.state(name, "succeeded", output=output, metrics=metrics)
            self.reply(200, state, cut=fault == "cut")

    def stream(self, name, job):
        fault = job["fault"]
        self.told(name, "stream", 404 if fault == "never" else 200)
        if fault == "never":
            return self.reply(404, {"detail": "There is no such stream."})
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        if fault == "late":
            time.sleep(0.1)
        pieces = job["pieces"]
        for place, piece in enumerate(pieces):
            if place == 2 and fault == "failed":
                self.event("error", json.dumps({"detail": "out of luck"}))
                self.event("done", json.dumps({"reason": "error"}))
                self.wfile.write(b"0\r\n\r\n")
                return None
            if place == 2 and fault == "cut":
                self.close_connection = True
                return None
            self.event("output", piece)
            time.sleep(0.002)
        self.event("done", "{}")
        self.wfile.write(b"0\r\n\r\n")
        return None

    def event(self, kind, data):
        lines = "".join(f"data: {line}\n" for line in data.split("\n"))
        event = f"event: {kind}\nid: 1:0\n{lines}\n".encode()
        self.wfile.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def main():
    log, *more = sys.argv[1:]
    predictions = Predictions(log, "endless" in more)
    servers = [Server(("127.0.0.1", 0), Handler) for _ in range(2)]
    ports = [server.server_address[1] for server in servers]
    for server in servers:
        server.predictions = predictions
        server.origins = [f"http://127.0.0.1:{port}" for port in ports]
        threading.Thread(target=server.serve_forever, daemon=True).start()
    print(*ports, flush=True)
    sys.stdin.read()


main()
