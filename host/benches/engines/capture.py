"""Sends the requests of a backend's test cases to a real server, and keeps its replies in the cases.

    python3 capture.py http://127.0.0.1:8300 plugins/backends/sglang/cases/captured-*

A case is a folder with a `request.http`; `runner plugin test DIR --bless` writes it from the case's inputs. The body of
the reply becomes `reply.sse`, `reply.json` or `reply.txt`, and `reply.STATUS.json` if the status is an error. Bless the
case again, and read what it became.
"""

import http.client
import pathlib
import sys
import urllib.parse

ENDINGS = {"text/event-stream": "sse", "application/json": "json"}


def send(engine, request):
    head, _, body = request.partition(b"\n\n")
    first, *fields = head.decode().splitlines()
    method, path = first.split(" ")
    address = urllib.parse.urlsplit(engine)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=120)
    connection.request(method, path, body.strip() or None, dict(field.split(": ", 1) for field in fields))
    return connection.getresponse()


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for case in map(pathlib.Path, sys.argv[2:]):
        if not (case / "request.http").exists():
            print(f"{case}: no request.http; passed over")
            continue
        reply = send(sys.argv[1], (case / "request.http").read_bytes())
        ending = ENDINGS.get(reply.headers.get_content_type(), "txt")
        name = f"reply.{ending}" if reply.status == 200 else f"reply.{reply.status}.{ending}"
        for old in case.glob("reply.*"):
            old.unlink()
        (case / name).write_bytes(reply.read())
        print(f"{case}: {name}")


if __name__ == "__main__":
    main()
