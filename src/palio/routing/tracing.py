"""Tracing: the way that a notification would take, without anybody getting it.

Each broker on the way matches it, says who would get it there, and asks those neighbours to which it would go
on. The answers are put together to a tree, whose root is the broker that was asked.
"""

from __future__ import annotations

from typing import Any

from palio.model.filter import Filter
from palio.protocol.envelope import Envelope
from palio.protocol.inquiries import Hop, Probe, Probed, Recipient, Trace, Traced
from palio.routing.core import Core
from palio.routing.durable.home.subscription import Durable
from palio.routing.echoes import Asker, Echo, Echoes
from palio.routing.effects import Send
from palio.routing.table import TableEntry

# How long a trace may take, in seconds.
TRACE_WITHIN = 5.0
# Who is listed by name: at each broker, and in an answer as a whole, which has to fit into a message.
MAX_RECIPIENTS = 1_000
MAX_RECIPIENTS_IN_ALL = 10_000
# Of one recipient so many subscriptions are listed, the rest is counted; and so many handles.
MAX_FILTERS = 100
MAX_HANDLES = 1_000
# Characters of a filter: who traces wants to recognise it.
MAX_TEXT = 1_000

WAS_HERE = "It came here by another way, too: the network is changing."


class _Tracing(Echo):
    __slots__ = ("_echoes", "hop", "onward")

    def __init__(self, echoes: Echoes, envelope: Envelope, asker: Asker, hop: Hop) -> None:
        super().__init__(envelope, asker)
        self._echoes = echoes
        self.hop = hop
        self.onward: list[Hop] = []

    def cut(self, branch: str, reason: str) -> None:
        self.onward.append(Hop(branch, problem=reason))

    def conclude(self) -> None:
        onward = tuple(sorted(self.onward, key=lambda hop: hop.broker))
        hop = Hop(self.hop.broker, self.hop.recipients, onward, self.hop.problem)
        if _count(hop) > MAX_RECIPIENTS_IN_ALL:
            hop, _ = _shortened(hop, MAX_RECIPIENTS_IN_ALL)
        self._echoes.tell(self, Traced(self.asker.number, hop), Probed(*self.key, hop))


class Tracing:
    """This broker's part in traces."""

    def __init__(self, core: Core, echoes: Echoes) -> None:
        self._core = core
        self._echoes = echoes

    def ask(self, session: str, message: Trace) -> None:
        """Begins a trace of a session. Raises `NoSession` or `TooManyInquiries`."""
        envelope = self._echoes.begin(session, message.notification)
        self._walk(envelope, Asker(None, session, message.number), TRACE_WITHIN)

    def probe(self, broker: str, message: Probe) -> None:
        envelope = message.envelope
        again = self._echoes.was_here(envelope)
        objection = WAS_HERE if again else self._echoes.objection(envelope)
        if objection is None:
            self._walk(envelope, Asker(broker), message.within)
        else:
            hop = Hop(self._core.broker, problem=objection)
            self._core.effects.append(Send(broker, Probed(envelope.origin, envelope.sequence, hop)))

    def probed(self, broker: str, message: Probed) -> None:
        """Handles a `Probed`: the answer of a neighbour."""
        echo = self._echoes.of_branch((message.origin, message.sequence), broker)
        if isinstance(echo, _Tracing):
            del echo.branches[broker]
            echo.onward.append(message.route)
            self._echoes.settle(echo)

    def _walk(self, envelope: Envelope, asker: Asker, within: float) -> None:
        way = self._core.forwarding.way(envelope, asker.neighbour)
        recipients, unlisted = _recipients(way.entries)
        hop = Hop(self._core.broker, recipients, problem=_unlisted(unlisted))
        echo = _Tracing(self._echoes, envelope, asker, hop)
        self._echoes.start(echo, within, way.ports, lambda left: Probe(way.onward, left))


def _recipients(entries: list[TableEntry[Filter]]) -> tuple[tuple[Recipient, ...], int]:
    """Who holds these entries here, by name; and how many more there are."""
    found: dict[tuple[bool, str], list[tuple[Filter, dict[str, Any]]]] = {}
    for entry in entries:
        for holder in entry.sources.holders:
            if holder.session:
                if holder.handles:  # otherwise it is to be taken down
                    found.setdefault((False, holder.session), []).append((entry.item, holder.handles))
            elif isinstance(holder, Durable):  # and not a filter that is to come into force
                found.setdefault((True, holder.name), []).append((entry.item, {}))
    listed = []
    for durable, name in sorted(found)[:MAX_RECIPIENTS]:
        held = found[durable, name]
        filters = sorted([_shown(filter) for filter, _ in held[:MAX_FILTERS]])
        handles = sorted([handle for _, handles in held[:MAX_FILTERS] for handle in handles])
        more = max(0, len(held) - MAX_FILTERS)
        listed.append(Recipient(name, durable, tuple(filters), tuple(handles[:MAX_HANDLES]), more))
    return tuple(listed), len(found) - len(listed)


def _shown(filter: Filter) -> str:
    """For people: what of its text they would read."""
    text = str(filter)
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"


def _unlisted(count: int) -> str | None:
    return f"{count:,} more recipients are not listed." if count else None


def _count(hop: Hop) -> int:
    return len(hop.recipients) + sum(map(_count, hop.onward))


def _shortened(hop: Hop, room: int) -> tuple[Hop, int]:
    """The same with at most so many recipients by name, those near the root first; and what room is left."""
    kept = hop.recipients[:room]
    left = room - len(kept)
    onward = []
    for one in hop.onward:
        shorter, left = _shortened(one, left)
        onward.append(shorter)
    problems = [_unlisted(len(hop.recipients) - len(kept)), hop.problem]
    problem = " ".join([problem for problem in problems if problem]) or None
    return Hop(hop.broker, kept, tuple(onward), problem), left
