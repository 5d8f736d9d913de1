"""Inspection: what can be asked about a broker itself (`palio subs`, `peers`, `stats`, …), as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from palio.broker.access.principal import Principal, sees
from palio.broker.access.rights import Allowance
from palio.model.notification import Notification
from palio.protocol.frames import MAX_FRAME
from palio.protocol.inquiries import Inspect
from palio.routing.scopes import owner_of

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer

PAGE = 500  # rows in one answer
PAGE_BYTES = MAX_FRAME // 4  # of them, unless a single one has more
LONGEST_EVENT = MAX_FRAME // 2  # characters of an event that is shown
_encode = msgspec.msgpack.Encoder().encode
_ABOUT_THE_BROKER = frozenset(("stats", "peers", "gaps", "clients", "overlay"))


class Inspection:
    """Answers inspections. What is long comes in parts."""

    def __init__(self, broker: BrokerServer) -> None:
        self._broker = broker
        self.questions: dict[str, Callable[[dict[str, Any], Principal], Iterator[Any]]] = {
            "stats": self._stats,
            "peers": self._peers,
            "gaps": self._gaps,
            "clients": self._clients,
            "overlay": self._overlay,
            "subs": self._subs,
            "dlq": self._dead_letters,
            "rights": self._rights,
        }

    def answer(self, message: Inspect, principal: Principal) -> Iterator[tuple[Any, bool]]:
        """The parts of an answer, and whether each is the last. Raises `NotAllowed`.

        Without the right to inspect, a principal sees what is its own: subscriptions, dead letters, rights.
        """
        questions = self._broker.extensions.questions | self.questions
        question = questions.get(message.what)
        if question is None:
            known = ", ".join(sorted(questions))
            yield {"error": f"{message.what!r} cannot be asked; there are {known}."}, True
            return
        if message.what in _ABOUT_THE_BROKER:
            principal.require(Allowance.INSPECT, f"ask for {message.what!r}")
        page: list[Any] = []
        size = 0
        for row in question(message.argument, principal):
            length = len(_encode(row))
            if len(page) == PAGE or (page and size + length > PAGE_BYTES):
                yield page, False
                page, size = [], 0
            page.append(row)
            size += length
        yield page, True

    def _stats(self, argument: dict[str, Any], principal: Principal) -> Iterator[Any]:
        broker = self._broker
        row: dict[str, Any] = {
            "broker": msgspec.to_builtins(broker.statistics()),
            "router": msgspec.to_builtins(broker.router.statistics()),
            "relay": broker.settings.relay,
        }
        if broker.store is not None:
            row["store"] = msgspec.to_builtins(broker.store.statistics())
        yield row

    def _peers(self, argument: dict[str, Any], principal: Principal) -> Iterator[Any]:
        kinds = self._broker.router.neighbours()
        for name, connection in sorted(self._broker.links.items()):
            row = msgspec.to_builtins(connection.statistics())
            kind = kinds[name].value if name in kinds else "not in use"
            yield row | {"kind": kind, "relay": self._broker.router.is_relay(name)}
        for address, reason in sorted(self._broker.dialling_problems().items()):
            yield {"name": "", "state": "no link", "address": address, "reason": reason}

    def _overlay(self, argument: dict[str, Any], principal: Principal) -> Iterator[Any]:
        overlay = msgspec.to_builtins(self._broker.router.overlay())
        yield {"name": self._broker.settings.name, "links": sorted(self._broker.router.neighbours()), **overlay}

    def _gaps(self, argument: dict[str, Any], principal: Principal) -> Iterator[Any]:
        """Journals that came back older, as far as that was noticed here."""
        durable = self._broker.router.durable
        for gap in durable.parts.forks.statistics() if durable is not None else ():
            yield msgspec.structs.asdict(gap)

    def _clients(self, argument: dict[str, Any], principal: Principal) -> Iterator[Any]:
        for connection in list(self._broker.sessions.values()):
            yield msgspec.to_builtins(connection.statistics())

    def _subs(self, argument: dict[str, Any], principal: Principal) -> Iterator[Any]:
        wanted, all_of_them = argument.get("durable"), principal.may(Allowance.INSPECT)
        for row in self._broker.router.subscriptions():
            name = row.get("durable")
            if wanted is None or name in (wanted, principal.own(str(wanted))):
                if all_of_them or owner_of(name or row["session"]) == principal.name:
                    yield row

    def _rights(self, argument: dict[str, Any], principal: Principal) -> Iterator[Any]:
        """What somebody may do, and the limits: for who asks, or with the right to inspect for anybody."""
        broker, name = self._broker, str(argument.get("principal", principal.name))
        if name != principal.name:
            principal.require(Allowance.INSPECT, "ask for the rights of others")
        rights = broker.access.rights_of(name) if name != principal.name else principal.rights
        yield {
            "principal": name,
            "authentication": broker.access.is_on,
            "when_wider": broker.settings.security.when_wider,
            **rights.plain(),
            "limits": msgspec.to_builtins(broker.settings.limits),
        }

    def _dead_letters(self, argument: dict[str, Any], principal: Principal) -> Iterator[Any]:
        durable = self._broker.router.durable
        if durable is None:
            return
        wanted = argument.get("name")
        all_of_them = principal.may(Allowance.DLQ)
        for name, subscription in sorted(durable.homes.subscriptions.items()):
            if wanted is not None and name not in (wanted, principal.own(str(wanted))):
                continue
            if all_of_them or owner_of(name) == principal.name:
                for number, attempts, envelope in subscription.dead:
                    if not sees(principal.rights.subscribe, envelope.notification):
                        continue
                    yield {
                        "name": principal.called(name),
                        "delivery": number,
                        "attempts": attempts,
                        "origin": envelope.origin,
                        "sequence": envelope.sequence,
                        "time": envelope.time,
                        "event": _shown(envelope.notification),
                        "failures": [
                            {"time": one.time, "taker": principal.called(one.taker), "why": str(one)}
                            for one in subscription.dead.failures_of(number)
                        ],
                    }


def _shown(notification: Notification) -> str:
    """An event as a line of JSON that fits into an answer."""
    size = notification.body.size
    if size <= LONGEST_EVENT:  # otherwise its text is not even worth making
        text = notification.to_json()
        if 4 * len(text) <= LONGEST_EVENT or len(text.encode()) <= LONGEST_EVENT:
            return text
    return msgspec.json.encode({"…": f"It has about {size:,} bytes, too many to be shown."}).decode()
