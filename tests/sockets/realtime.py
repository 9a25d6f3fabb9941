"""vLLM's /v1/realtime, played by the package websockets, with faults: arguments are the port (0 for
any) and the file of the log. It prints its port, and `open` for each WebSocket, and serves until its input ends.

Every tenth connection of each kind is at fault; which, `fault_of` says. A line of the log is a
connection: what came, when, and what was sent.
"""

import asyncio
import base64
import hashlib
import http
import json
import socket
import struct
import sys
import time

import websockets
from websockets.asyncio.server import serve

# The largest message that the client takes, and one more byte.
OVERSIZE = (16 << 20) + 1


def fault_of(number):
    return {
        1: "forbidden" if number % 20 == 1 else "unavailable",
        2: "error",
        3: "close",
        4: "reset",
        5: "silence",
        6: "not-utf-8",
        7: "oversize",
        8: "away",
    }.get(number % 10)


class Server:
    def __init__(self, log):
        self.log = log
        self.count = 0

    def write(self, line):
        self.log.write(json.dumps(line) + "\n")
        self.log.flush()

    def handshake(self, connection, request):
        if request.path == "/v1/models":
            return connection.respond(http.HTTPStatus.OK, json.dumps({"data": [{"id": "m"}]}))
        number = self.count
        self.count += 1
        connection.number = number
        connection.path = request.path
        fault = fault_of(number)
        refused = {
            "forbidden": (http.HTTPStatus.FORBIDDEN, "no entry"),
            "unavailable": (http.HTTPStatus.SERVICE_UNAVAILABLE, "no worker is free"),
        }.get(fault)
        if refused is None:
            return None
        self.write({"number": number, "fault": fault})
        return connection.respond(*refused)

    async def converse(self, connection):
        number = connection.number
        line = {"number": number, "fault": fault_of(number), "deltas": [], "arrivals": []}
        line["id"] = connection.request.headers.get("x-request-id")
        digest = hashlib.sha256(b"GET\0" + connection.path.encode() + b"\0")
        samples = 0
        print("open", flush=True)
        try:
            await connection.send(json.dumps({"type": "session.created", "id": f"sess-{number}", "created": 0}))
            begun = False
            while True:
                message = await connection.recv()
                line["arrivals"].append(time.monotonic_ns())
                digest.update(message.encode())
                event = json.loads(message)
                if event["type"] == "session.update":
                    line["model"] = event["model"]
                elif event["type"] == "input_audio_buffer.append":
                    samples += len(base64.b64decode(event["audio"], validate=True)) // 2
                elif event.get("final"):
                    break
                elif event["type"] == "input_audio_buffer.commit":
                    begun = True
            assert begun and line["model"]
            line["samples"] = samples
            line["digest"] = digest.hexdigest()[:16]
            await self.answer(connection, number, line)
            await connection.wait_closed()
        except websockets.ConnectionClosed:
            pass
        line["closed"] = connection.close_code
        self.write(line)

    async def answer(self, connection, number, line):
        fault = line["fault"]
        words = 3 + number % 7

        async def say(word):
            delta = f"{word}-{number} é "
            line["deltas"].append(delta)
            await connection.send(json.dumps({"type": "transcription.delta", "delta": delta}))

        for word in range(words):
            if word == 2 and fault:
                await self.fail(connection, fault)
                return
            await say(word)
            await asyncio.sleep(0.002)
        text = "".join(line["deltas"])
        usage = {"prompt_tokens": line["samples"], "completion_tokens": words, "total_tokens": 0}
        await connection.send(json.dumps({"type": "transcription.done", "text": text, "usage": usage}))

    async def fail(self, connection, fault):
        if fault == "error":
            error = {"type": "error", "error": "The engine is overloaded.", "code": "processing_error"}
            await connection.send(json.dumps(error))
        elif fault == "close":
            await connection.close(1011, "no worker is left")
        elif fault == "away":
            await connection.close(1001, "shutting down")
        elif fault == "reset":
            now = struct.pack("ii", 1, 0)
            connection.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, now)
            connection.transport.abort()
        elif fault == "not-utf-8":
            await connection.send(b"\xc3\x28", text=True)
        elif fault == "oversize":
            await connection.send(b"x" * OVERSIZE, text=True)


async def main():
    port, path = int(sys.argv[1]), sys.argv[2]
    with open(path, "w", encoding="utf-8") as log:
        server = Server(log)
        options = {"compression": "deflate", "ping_interval": 0.2, "ping_timeout": 5, "max_size": None}
        async with serve(server.converse, "127.0.0.1", port, process_request=server.handshake, **options) as serving:
            print(serving.sockets[0].getsockname()[1], flush=True)
            await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(main())
