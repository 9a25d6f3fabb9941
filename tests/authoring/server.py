"""A server of an API like OpenAI's that is not ours: prints its port, and appends what it is asked to a file.

It repeats the key that it is given, names its model by a path, and sends header fields that nobody wants in a case."""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

MODEL = "/srv/someone/models/tiny-llama"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, kind, pieces):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Set-Cookie", "session=of-someone")
        self.send_header("X-Organization", "someone")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in pieces:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def document(self, status, value):
        self.reply(status, "application/json", [json.dumps(value).encode()])

    def do_GET(self):
        if self.path == "/v1/models":
            self.document(200, {"object": "list", "data": [{"id": MODEL, "object": "model"}]})
        else:
            self.document(404, {"error": {"message": "no such page"}})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        key = self.headers.get("Authorization", "")
        with open(sys.argv[1], "a", encoding="utf-8") as seen:
            seen.write(json.dumps({"path": self.path, "body": body.decode(), "key": key}) + "\n")
        asked = json.loads(body)
        if "refuse" in json.dumps(asked):
            self.document(429, {"error": {"message": f"the queue is full for {key}"}})
            return
        if not asked.get("stream"):
            choice = {"index": 0, "text": "one two", "finish_reason": "length"}
            self.document(200, {"model": MODEL, "choices": [choice], "usage": {"prompt_tokens": 6, "completion_tokens": 2}})
            return
        lines = []
        for word, finish in (("one", None), (" two", "length")):
            choice = {"index": 0, "text": word, "finish_reason": finish}
            lines.append("data: " + json.dumps({"model": MODEL, "user": key, "choices": [choice]}) + "\n\n")
        lines.append("data: [DONE]\n\n")
        whole = "".join(lines).encode()
        # Cut where no frame ends.
        self.reply(200, "text/event-stream", [whole[at : at + 37] for at in range(0, len(whole), 37)])


server = HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
