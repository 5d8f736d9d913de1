"""The network that things happen to: brokers as processes, each behind a proxy that all links to it go through.

The proxies are what makes links breakable without any rights: brokers tell each other only the addresses of
these. Clients go to the brokers themselves. Whatever is done here is undone by `close`, at whatever moment.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random

import msgspec

from palio.broker.settings import Peer, Settings
from palio.cli.chaos.proxy import LinkProxy, Passage
from palio.cli.network.file import NetworkPlan, with_addresses
from palio.cli.network.members import Member
from palio.protocol.addresses import split_address
from palio.routing.overlay.settings import OverlayKind, OverlaySettings
from palio.sim.shapes import draw

# Neighbours that a broker has at the most: few, so that there are inner brokers whose death matters.
DEGREE = 4
# The longest pause between two looks for other parts of the network, in heartbeats: a run is short.
LOOK_EVERY = 5
# Of how many brokers all others know from the beginning: one of them will be up.
_JOINED = 3


class ChaosNetwork:
    """Brokers by their names, and what stands between them."""

    def __init__(
        self,
        names: Sequence[str],
        folder: Path,
        *,
        settings: Settings,
        overlay: OverlayKind,
        heartbeat: float,
        seed: int,
    ) -> None:
        """All brokers have these settings, but for what is their own, and for how they are linked."""
        self.names = tuple(names)
        self.members: dict[str, Member] = {}
        self._overlay = overlay
        self._seed = seed
        self._heartbeat = heartbeat
        own = {
            name: msgspec.structs.replace(
                settings,
                name=name,
                listen="127.0.0.1:0",
                http="off",
                data=str(folder / name),
                store="",
                heartbeat=heartbeat,
                peers=(),
            )
            for name in names
        }
        self._settings, self._reserved = with_addresses(NetworkPlan(own, (), str(folder)))
        self._proxies: dict[str, LinkProxy] = {}
        self._cut: Counter[frozenset[str]] = Counter()  # pairs
        self._parted: list[frozenset[str]] = []

    async def start(self) -> None:
        """Start everything. Raises `CannotStart`."""
        for name, settings in self._settings.items():
            port = split_address(settings.listen)[1]
            self._proxies[name] = LinkProxy(lambda port=port: port, partial(self._passage, name))  # type: ignore[misc]
            await self._proxies[name].start()
        for name, settings in self._settings.items():
            self.members[name] = Member(self._linked(settings))
        await self.members[self.names[0]].start()
        at_once = asyncio.Semaphore(1 + (os.cpu_count() or 1))

        async def start(name: str) -> None:
            async with at_once:
                await self.members[name].start()

        await asyncio.gather(*map(start, self.names[1:]))

    def _linked(self, settings: Settings) -> Settings:
        """The settings with what they say of links: those of a tree that is drawn, or whom to join."""
        address = {name: f"127.0.0.1:{proxy.port}" for name, proxy in self._proxies.items()}
        if self._overlay == "fixed":
            edges = draw("tree", len(self.names), Random(f"chaos links {self._seed}")).edges
            own = self.names.index(settings.name)
            peers = tuple([Peer(address[self.names[one]]) for one, other, _ in edges if other == own])
            return msgspec.structs.replace(settings, peers=peers, overlay=OverlaySettings(kind="fixed"))
        overlay = msgspec.structs.replace(
            settings.overlay,
            kind=self._overlay,
            join=tuple([address[name] for name in self.names[:_JOINED]]),
            degree=DEGREE,
            look_every=LOOK_EVERY * self._heartbeat,
            address=address[settings.name],
        )
        return msgspec.structs.replace(settings, overlay=overlay)

    def _passage(self, callee: str, caller: str) -> Passage:
        if self._cut[frozenset((callee, caller))]:
            return Passage.CUT
        if caller and any((callee in some) != (caller in some) for some in self._parted):
            return Passage.HELD
        return Passage.OPEN

    def _look_again(self) -> None:
        for proxy in self._proxies.values():
            proxy.look_again()

    # What can be done to it

    async def end(self, name: str, how: signal.Signals) -> None:
        """End a broker: killed, or in order."""
        await self.members[name].end(how)

    async def start_again(self, name: str) -> None:
        """Start a broker that has ended, where it was. Raises `CannotStart`."""
        await self.members[name].start()

    def stop(self, name: str) -> None:
        """Let a broker stand still."""
        self.members[name].send_signal(signal.SIGSTOP)

    def go_on(self, name: str) -> None:
        self.members[name].send_signal(signal.SIGCONT)

    def cut(self, pair: frozenset[str]) -> None:
        """End the link between two brokers, and refuse new ones."""
        self._cut[pair] += 1
        self._look_again()

    def mend(self, pair: frozenset[str]) -> None:
        self._cut[pair] -= 1

    def part(self, some: frozenset[str]) -> None:
        """Let nothing pass between these brokers and all others."""
        self._parted.append(some)
        self._look_again()

    def join(self, some: frozenset[str]) -> None:
        self._parted.remove(some)
        self._look_again()

    async def close(self) -> None:
        """End everything at once."""
        await asyncio.gather(*[member.end(signal.SIGKILL) for member in self.members.values()])
        await asyncio.gather(*[proxy.close() for proxy in self._proxies.values()])
        for held in self._reserved:
            held.close()
