"""A broker as a process, and `curl`: publish, read, be called back, and go on after `kill -9`."""

from __future__ import annotations

import http.server
import json
import queue
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cli.conftest import environment as environment  # noqa: PLC0414 (a fixture)
from tests.cli.processes import PATIENCE, await_condition, broker_up

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this machine")


def curl(*arguments: str) -> str:
    done = subprocess.run(
        ["curl", "--silent", "--show-error", "--max-time", "20", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@contextmanager
def webhook() -> Iterator[tuple[str, queue.Queue[dict[str, str]]]]:
    """A webhook in this process, and what it was called with."""
    called: queue.Queue[dict[str, str]] = queue.Queue()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_OPTIONS(self) -> None:
            self.send_response(200)
            self.send_header("WebHook-Allowed-Origin", "*")
            self.end_headers()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            called.put({**self.headers, "body": body.decode()})
            self.send_response(204)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", called
    finally:
        server.shutdown()
        server.server_close()


def test_from_curl_to_webhook_and_on_after_a_kill(environment, tmp_path):
    (tmp_path / "palio.toml").write_text('[gateway]\nsinks = ["127.0.0.0/8"]\n')
    with webhook() as (sink, called):
        with broker_up("--http", "127.0.0.1:0", environment=environment, folder=tmp_path) as (process, ready):
            url = f"http://127.0.0.1:{ready['http_port']}"
            reader = subprocess.Popen(
                ["curl", "--silent", "-N", f"{url}/events?filter=price>100"], stdout=subprocess.PIPE, text=True
            )
            assert reader.stdout is not None
            assert reader.stdout.readline() == ": subscribed\n"
            wish = {"id": "desk", "filters": [{"palio": "price > 100"}], "sink": sink}
            assert json.loads(curl("--json", json.dumps(wish), f"{url}/subscriptions"))["id"] == "desk"
            for price in (99, 101.5):
                said = json.loads(
                    curl("--json", json.dumps({"symbol": "ACME", "price": price}), f"{url}/events")
                )
                assert said["journaled"] is True
            lines = [reader.stdout.readline() for _ in range(4)]
            assert 'data: {"price":101.5,"symbol":"ACME"}\n' in lines
            reader.kill()
            reader.communicate()
            assert json.loads(called.get(timeout=PATIENCE)["body"]) == {"price": 101.5, "symbol": "ACME"}
            event = ["-H", "ce-specversion: 1.0", "-H", "ce-id: 1", "-H", "ce-source: /s", "-H", "ce-type: t"]
            curl(*event, "--json", '{"price": 5}', f"{url}/events")
            refused = json.loads(curl("--json", '{"price": 1e999}', f"{url}/events"))
            assert (refused["status"], refused["path"]) == (400, "$.price")
            process.kill()
            process.wait(PATIENCE)
            (tmp_path / "ready.json").unlink()  # it could not do so itself
        with broker_up("--http", "127.0.0.1:0", environment=environment, folder=tmp_path) as (process, ready):
            url = f"http://127.0.0.1:{ready['http_port']}"
            again = json.loads(curl(*event, "--json", '{"price": 5}', f"{url}/events"))
            assert again["sequences"] == [3]  # it was known
            curl("--json", '{"price": 200}', f"{url}/events")
            while json.loads(called.get(timeout=PATIENCE)["body"]) != {"price": 200}:
                pass
            history = curl(f"{url}/events?since=all&wait=1")
            assert history.count("data: ") == 4
            assert "palio_pushes_total" in curl(f"{url}/metrics")
            await_condition(
                lambda: json.loads(curl(f"{url}/subscriptions/desk"))["status"]["pushed"] >= 1, process
            )
