"""`network`: several brokers for a test, linked with each other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Self

from palio.protocol.peers import LinkKind
from palio.routing.router import Router
from palio.testing.broker import Broker, broker


class Network:
    """Brokers by their names: `async with palio.testing.network([("one", "two")]) as network`."""

    def __init__(self, brokers: Mapping[str, Broker], links: Iterable[tuple[str, str]], kind: LinkKind) -> None:
        self.brokers = dict(brokers)
        self.links = list(links)
        self._kind = kind

    def __getitem__(self, name: str) -> Broker:
        return self.brokers[name]

    @property
    def address(self) -> str:
        """All brokers, for a client that takes whichever there is."""
        return "palio://" + ",".join(one.address.removeprefix("palio://") for one in self.brokers.values())

    async def __aenter__(self) -> Self:
        started: set[str] = set()
        for name, one in self.brokers.items():
            others = [a if b == name else b for a, b in self.links if name in (a, b)]
            one.link_to(*[self.brokers[other] for other in others if other in started], kind=self._kind)
            await one.start()
            started.add(name)
        await self.until_linked()
        return self

    async def until_linked(self) -> None:
        """Wait until every link between brokers that run is in use at both ends, and questions go over it."""
        running = {name for name, one in self.brokers.items() if one.is_running}
        for one, other in self.links:
            if {one, other} <= running:
                for a, b in ((one, other), (other, one)):
                    await self.brokers[a].until(partial(_is_linked, self.brokers[a].running.router, b))

    async def __aexit__(self, *problem: object) -> None:
        await asyncio.gather(*[one.stop() for one in self.brokers.values()])


def _is_linked(router: Router, neighbour: str) -> bool:
    durable = router.durable
    return neighbour in router.neighbours() and (
        durable is None or neighbour in durable.statistics().members  # before that, it is not asked
    )


def network(links: Iterable[tuple[str, str]], *, graph: bool = False, **settings: Any) -> Network:
    """Brokers that are linked in pairs. With `graph`, cycles are welcome. `settings` are as for `broker`."""
    pairs = list(links)
    names = dict.fromkeys(name for pair in pairs for name in pair)
    kind = LinkKind.GRAPH if graph else LinkKind.PEER
    return Network({name: broker(name=name, **settings) for name in names}, pairs, kind)
