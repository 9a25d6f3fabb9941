"""A collector of traces, made of OpenTelemetry's own definitions.

python3 collector.py LOG MODE: listens on a port of its own, which it prints, and ends when its standard
input does. A line of the log for each request has its path, its header fields and its message as JSON. MODE is
`take`, `refuse` (HTTP 503), `forbid` (HTTP 403, with the key in the body), `reject` (each span but one), or `hang`.
"""

import base64
import http.server
import json
import sys
import threading

from google.protobuf import unknown_fields
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces

LOG, MODE = sys.argv[1:]
log = open(LOG, "w", buffering=1)
writing = threading.Lock()


def unknown(message):
    """Whether some field of a message is none of the definitions, which is how a wrong number shows."""
    if len(unknown_fields.UnknownFieldSet(message)):
        return True
    for field, value in message.ListFields():
        if field.message_type is not None:
            for one in [value] if isinstance(value, Message) else value:
                if unknown(one):
                    return True
    return False


def shown(asked):
    """The message as JSON, whose ids are hexadecimal digits, as in OTLP's own JSON."""
    message = MessageToDict(asked)
    for resource in message.get("resourceSpans", []):
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for name in ("traceId", "spanId", "parentSpanId"):
                    if name in span:
                        span[name] = base64.b64decode(span[name]).hex()
    return message


class Collector(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if MODE == "hang":
            threading.Event().wait()
        if self.path == "/v1/traces":
            asked, reply = traces.ExportTraceServiceRequest(), traces.ExportTraceServiceResponse()
        else:
            asked, reply = metrics.ExportMetricsServiceRequest(), metrics.ExportMetricsServiceResponse()
        asked.ParseFromString(body)
        line = {
            "path": self.path,
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "unknown": unknown(asked),
            "message": shown(asked),
        }
        with writing:
            log.write(json.dumps(line) + "\n")
        status, answer = 200, b""
        if MODE == "refuse":
            status, answer = 503, b"busy"
        elif MODE == "forbid":
            status, answer = 403, b"no right with " + self.headers["x-key"].encode()
        elif MODE == "reject" and self.path == "/v1/traces":
            spans = asked.resource_spans[0].scope_spans[0].spans
            reply.partial_success.rejected_spans = len(spans) - 1
            reply.partial_success.error_message = "too many"
            answer = reply.SerializeToString()
        self.send_response(status)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True


server = Server(("127.0.0.1", 0), Collector)
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
