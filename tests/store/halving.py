"""A way to a PostgreSQL server that breaks in the middle: the client sees the end, the server does not."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path

_NAME = ".s.PGSQL.5432"


class Halving:
    """Passes bytes on between a socket in a folder of its own and that of a server."""

    def __init__(self, folder: Path, server: Path) -> None:
        self.folder = folder
        self._server = server / _NAME
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / _NAME))
        self._listening.listen()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._kept: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._server))
                self._pairs.append((client, server))
                for one, other in ((client, server), (server, client)):
                    threading.Thread(target=_pass_on, args=(one, other), daemon=True).start()

    def halve(self) -> None:
        """End all connections for the client, and leave the server waiting for more."""
        for client, server in self._pairs:
            self._kept.append(server)  # which stays open
            client.shutdown(socket.SHUT_RDWR)
        self._pairs.clear()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for one in [*self._kept, *[one for pair in self._pairs for one in pair]]:
            one.close()


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while data := one.recv(65_536):
            other.sendall(data)
