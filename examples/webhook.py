"""A webhook for trying things out: it agrees to be called, and prints what it is called with.

python examples/webhook.py 9000
"""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Webhook(BaseHTTPRequestHandler):
    def do_OPTIONS(self) -> None:
        """The broker asks whether it may send events."""
        self.send_response(200)
        self.send_header("WebHook-Allowed-Origin", "*")
        self.end_headers()

    def do_POST(self) -> None:
        """An event: its context is in the headers, its data the body."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        sys.stdout.write(f"{self.headers['ce-type']} {self.headers['ce-id']} {body.decode()}\n")
        sys.stdout.flush()
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing but events is printed."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Webhook).serve_forever()
