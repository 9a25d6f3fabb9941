"""A router in front of two servers: requests with the same session header go to the same server.

python3 router.py LOG HEADER URL URL: listens on a port of its own, which it prints, and ends when its
standard input does. A line of the log for each request has its header fields and the server's number.
"""

import http.client
import http.server
import json
import sys
import threading
import urllib.parse
import zlib

LOG, HEADER, *URLS = sys.argv[1:]
SERVERS = [urllib.parse.urlsplit(url).netloc for url in URLS]
log = open(LOG, "w", buffering=1)
writing = threading.Lock()


class Router(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.forward(b"")

    def do_POST(self):
        self.forward(self.rfile.read(int(self.headers["content-length"])))

    def forward(self, body):
        key = self.headers.get(HEADER, "")
        server = zlib.crc32(key.encode()) % len(SERVERS)
        # Questions before the load are no part of it.
        if self.command == "POST":
            fields = {name.lower(): value for name, value in self.headers.items()}
            with writing:
                log.write(json.dumps({"server": server, "headers": fields}) + "\n")
        upstream = http.client.HTTPConnection(SERVERS[server])
        names = ("host", "connection")
        headers = {n: v for n, v in self.headers.items() if n.lower() not in names}
        upstream.request(self.command, self.path, body, headers)
        reply = upstream.getresponse()
        self.send_response(reply.status)
        for name, value in reply.getheaders():
            if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                self.send_header(name, value)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        while piece := reply.read1(65536):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")
        upstream.close()


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True


server = Server(("127.0.0.1", 0), Router)
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
