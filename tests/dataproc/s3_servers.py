"""A local S3 server, and a proxy in front of it that fails now and then."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def s3_server() -> Iterator[int]:
    """A moto server on a free port of this machine."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        yield server.get_host_and_port()[1]
    finally:
        server.stop()


class FlakyProxy(ThreadingHTTPServer):
    """Forwards requests to a port of this machine; every `period`-th is answered 503, every `2 period`-th is cut off instead."""

    daemon_threads = True

    def __init__(self, target: int, period: int):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target, self.period = target, period
        self.requests = self.failures = 0
        self.lock = threading.Lock()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FlakyProxy

    def _forward(self) -> None:
        with self.server.lock:
            self.server.requests += 1
            number = self.server.requests
            fails = number % self.server.period == 0
            self.server.failures += fails
        body = self._body()
        if fails and number % (2 * self.server.period) == 0:
            self.close_connection = True
            self.connection.close()
            return
        if fails:
            self.send_response(503)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        upstream = http.client.HTTPConnection("127.0.0.1", self.server.target, timeout=30)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("transfer-encoding", "expect")}
        if body:
            headers["Content-Length"] = str(len(body))
        upstream.request(self.command, self.path, body, headers)
        answer = upstream.getresponse()
        data = answer.read()
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(data))
        self.send_header("Content-Length", length or "0")
        self.end_headers()
        self.wfile.write(data)

    def _body(self) -> bytes:
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.send_response_only(100)
            self.end_headers()
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _forward

    def log_message(self, *arguments) -> None:
        """Requests are not worth a line each."""


@contextmanager
def flaky_proxy(target: int, period: int) -> Iterator[FlakyProxy]:
    proxy = FlakyProxy(target, period)
    thread = threading.Thread(target=proxy.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.shutdown()
        proxy.server_close()
