"""A broker that knows families, as a process of its own: as `palio up` starts it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.live.servers import PENDING_BYTES, Server
from palio.broker.settings import Settings, load
from palio.cli.brokers.hosting import host
from palio.cli.brokers.up import write_ports
from palio.documents import Family

PATIENCE = 60.0


def start_broker(folder: Path, families: Sequence[Family], **settings: Any) -> Server:
    """Started, with these families; `settings` are those of `palio.toml`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "families").write_bytes(msgspec.msgpack.encode(list(families)))
    given = {
        "listen": "127.0.0.1:0",
        "http": "off",
        "data": str(folder / "data"),
        "log_level": "warning",
        "limits": {"outgoing": PENDING_BYTES},
        **settings,
    }
    ready = folder / "ready.json"
    words = [sys.executable, "-m", "benchmarks.documents.serving", json.dumps(given), str(folder / "families")]
    root = str(Path(__file__).resolve().parents[2])
    server = Server("palio", [*words, str(ready)], folder, {"PYTHONPATH": root})
    until = time.monotonic() + PATIENCE
    while not ready.exists():
        server.check(until)
        time.sleep(0.02)
    said = json.loads(ready.read_text())
    server.port = said["port"]
    server.http_port = said["http_port"]
    return server


def main() -> None:
    """The process: settings, the file of families, and the one that is written when it is up."""
    given, families, ready = sys.argv[1:]
    settings: Settings = load(None, flags=json.loads(given))
    told = msgspec.msgpack.decode(Path(families).read_bytes(), type=list[Family])

    def started(broker: Any) -> None:
        broker.families.tell(told)
        write_ports(Path(ready), broker)

    host(settings, started)


if __name__ == "__main__":
    main()
