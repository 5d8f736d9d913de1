"""What can be asked about a broker itself (`palio subs`, `peers`, `stats`, `dlq`, …), as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from palio.routing.protocol import Inspect

if TYPE_CHECKING:
    from palio.broker.broker import Broker

PAGE = 500  # rows in one answer


class Inspection:
    """Answers questions. What is long comes in parts."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.questions: dict[str, Callable[[dict[str, Any]], Iterator[Any]]] = {
            "stats": self._stats,
            "peers": self._peers,
            "clients": self._clients,
            "subs": self._subs,
            "dlq": self._dead_letters,
        }

    def answer(self, message: Inspect) -> Iterator[tuple[Any, bool]]:
        """The parts of an answer, and whether each is the last."""
        question = self.questions.get(message.what)
        if question is None:
            known = ", ".join(sorted(self.questions))
            yield {"error": f"{message.what!r} cannot be asked; there are {known}."}, True
            return
        rows = question(message.argument)
        page = list(islice(rows, PAGE))
        while len(page) == PAGE:
            following = list(islice(rows, PAGE))
            yield page, not following
            page = following
            if not page:
                return
        yield page, True

    def _stats(self, argument: dict[str, Any]) -> Iterator[Any]:
        broker = self._broker
        row: dict[str, Any] = {
            "broker": msgspec.to_builtins(broker.statistics()),
            "router": msgspec.to_builtins(broker.router.statistics()),
        }
        if broker.store is not None:
            row["store"] = msgspec.to_builtins(broker.store.statistics())
        yield row

    def _peers(self, argument: dict[str, Any]) -> Iterator[Any]:
        kinds = self._broker.router.neighbours()
        for name, connection in sorted(self._broker.links.items()):
            row = msgspec.to_builtins(connection.statistics())
            yield row | {"kind": kinds[name].value if name in kinds else "not in use"}
        for address, reason in sorted(self._broker.dialling_problems().items()):
            yield {"name": "", "state": "no link", "address": address, "reason": reason}

    def _clients(self, argument: dict[str, Any]) -> Iterator[Any]:
        for connection in list(self._broker.sessions.values()):
            yield msgspec.to_builtins(connection.statistics())

    def _subs(self, argument: dict[str, Any]) -> Iterator[Any]:
        wanted = argument.get("durable")
        for row in self._broker.router.subscriptions():
            if wanted is None or row.get("durable") == wanted:
                yield row

    def _dead_letters(self, argument: dict[str, Any]) -> Iterator[Any]:
        durable = self._broker.router.durable
        if durable is None:
            return
        wanted = argument.get("name")
        for name, subscription in sorted(durable.homes.subscriptions.items()):
            if wanted is None or name == wanted:
                for number, attempts, envelope in subscription.dead:
                    yield {
                        "name": name,
                        "delivery": number,
                        "attempts": attempts,
                        "origin": envelope.origin,
                        "sequence": envelope.sequence,
                        "time": envelope.time,
                        "event": envelope.notification.to_json(),
                    }
