"""HTTP servers of this process on the loopback."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class QuietHandler(BaseHTTPRequestHandler):
    # head and body are two writes; with Nagle the second waits 40 ms for the ACK
    disable_nagle_algorithm = True

    def respond(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class QuietServer(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Clients go away in some tests."""


@contextmanager
def listen(
    handler: Callable[..., BaseHTTPRequestHandler],
    tls: ssl.SSLContext | None = None,
    port: int = 0,
) -> Iterator[int]:
    """Run a server while the block runs; yield its port."""
    with QuietServer(("127.0.0.1", port), handler) as listener:
        if tls:
            listener.socket = tls.wrap_socket(listener.socket, server_side=True)
        thread = threading.Thread(target=listener.serve_forever, args=(0.002,))
        thread.start()
        try:
            yield listener.server_port
        finally:
            listener.shutdown()
            thread.join()
