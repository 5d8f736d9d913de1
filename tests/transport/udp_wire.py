"""`UdpWire`: stands before a UDP port, and loses, doubles, delays datagrams, or comes from another port."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self


class UdpWire:
    """Passes on between whoever sends to its port and one target. Of each datagram the share `loss` is lost,
    `doubled` comes twice, and `late` comes after later ones."""

    def __init__(
        self, target: int, seed: int = 1, *, loss: float = 0.0, doubled: float = 0.0, late: float = 0.0
    ) -> None:
        self.target = "127.0.0.1", target
        self.loss, self.doubled, self.late = loss, doubled, late
        self.is_cut = False
        self.spoil: Callable[[bytes], bytes] = lambda data: data  # what comes to the target
        self.passed = 0  # datagrams, both ways
        self._random = random.Random(seed)
        self._loop = asyncio.get_running_loop()
        self._outside: dict[Any, socket.socket] = {}  # by who is before it: the socket that speaks for it
        self._inside = self._socket()
        self.port = self._inside.getsockname()[1]
        self._loop.add_reader(self._inside, self._from_inside)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one in (self._inside, *self._outside.values()):
            self._loop.remove_reader(one)
            one.close()

    def move(self) -> None:
        """From now on all who are before it come from other ports."""
        for source, old in list(self._outside.items()):
            self._loop.remove_reader(old)
            old.close()
            self._outside[source] = self._speaker(source)

    @staticmethod
    def _socket() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.setblocking(False)
        made.bind(("127.0.0.1", 0))
        return made

    def _speaker(self, source: Any) -> socket.socket:
        made = self._socket()
        self._loop.add_reader(made, self._from_outside, made, source)
        return made

    def _from_inside(self) -> None:
        for data, source in _read(self._inside):
            if source not in self._outside:
                self._outside[source] = self._speaker(source)
            data = self.spoil(data)
            self._pass(lambda data=data, source=source: _send(self._outside[source], data, self.target))

    def _from_outside(self, own: socket.socket, source: Any) -> None:
        for data, _ in _read(own):
            self._pass(lambda data=data: _send(self._inside, data, source))

    def _pass(self, send: Any) -> None:
        chance = self._random.random
        if self.is_cut or chance() < self.loss:
            return
        self.passed += 1
        for _ in range(2 if chance() < self.doubled else 1):
            if chance() < self.late:
                self._loop.call_later(0.02 * chance(), send)
            else:
                send()


def _read(own: socket.socket) -> list[tuple[bytes, Any]]:
    found = []
    while own.fileno() >= 0 and len(found) < 64:
        try:
            found.append(own.recvfrom(65_536))
        except OSError:  # nothing more, or nobody there any more
            break
    return found


def _send(own: socket.socket, data: bytes, address: Any) -> None:
    if own.fileno() >= 0:
        try:
            own.sendto(data, address)
        except OSError:
            return
