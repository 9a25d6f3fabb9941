"""Sends the requests of a backend's test cases to a real server, and keeps its replies in the cases.

    python3 capture.py http://127.0.0.1:8300 plugins/backends/sglang/cases/captured-*.case

A case is a file with a section `request.http`; `runner plugin test CASE --bless` writes it from the case's inputs. The
body of the reply becomes the section `reply.sse`, `reply.json` or `reply.txt`, and `reply.STATUS.json` if the status is
an error. Bless the case again, and read the difference.
"""

import http.client
import pathlib
import re
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
        comment, *rest = re.split(rb"^-- (.+) --\n", case.read_bytes(), flags=re.MULTILINE)
        sections = dict(zip(rest[::2], rest[1::2]))
        if b"request.http" not in sections:
            print(f"{case}: no request.http; passed over")
            continue
        reply = send(sys.argv[1], sections[b"request.http"])
        ending = ENDINGS.get(reply.headers.get_content_type(), "txt")
        name = f"reply.{ending}" if reply.status == 200 else f"reply.{reply.status}.{ending}"
        sections = {old: text for old, text in sections.items() if not old.startswith(b"reply.")}
        body = reply.read()
        # What ends the lines stands behind the name.
        if b"\r\n" in body:
            name, body = f"{name} (crlf)", body.replace(b"\r\n", b"\n")
        elif not body.endswith(b"\n"):
            name, body = f"{name} (open)", body + b"\n"
        sections[name.encode()] = body
        case.write_bytes(comment + b"".join(b"-- %s --\n%s" % section for section in sections.items()))
        print(f"{case}: {name}, status {reply.status}")


if __name__ == "__main__":
    main()
