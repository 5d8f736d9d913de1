"""The oracle: what had to be delivered, what could be, and what must not. It knows nothing of routing.

It reads a `History` and asks `Filter.matches`, nothing else.

A subscription of a session has a span in which it is *held*, from the moment of its request to that of its
end; its access broker is at the same place, so both are exact. Within it lies the span in which it is
*known*, from the moment at which the client was told `Ready`, or at which the network was at rest, whichever
is earlier. A notification has a span too: from its publication to the moment at which it was last under way.

- A session *must* get a notification if, at every moment of the notification's span, it has some known
  subscription that selects it. (One subscription may take over from another: additions come before removals
  everywhere in the network, so there is no gap for a notification to fall through.) With advertisements, the
  publisher must all the while have had a known advertisement that covers it. What has to cross a link that is
  missing, or was until the network came to rest, is excused; links elsewhere are no excuse. (Through a graph
  there are several ways, so there every link can be one that it has to cross.)
- It *may* get it if a subscription that selects it is held at some moment of that span: the two race.
- Otherwise it must not get it.

And for each delivery: it names exactly the handles of those subscriptions that are held at that very moment
and select the notification; its content is what was published; there is one copy; the notifications of one
publisher come in their order. (While links come and go, a graph finds new ways, on which a notification can
overtake another one: the same excuse.)

For a large run not every notification is compared with every subscription; as many as fit into a budget are,
evenly spread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from palio.model.filter import Filter
from palio.sim import violations
from palio.sim.edge_history import Delivery, History
from palio.sim.sessions import (
    HeldSpan,
    HeldSubscription,
    SessionHistory,
    SessionRecord,
    TakenPublication,
    replay,
)
from palio.sim.violations import Name

# Comparisons of a notification with a filter take a microsecond or two each: this is some seconds in all.
_MOST_COMPARISONS = 1_000_000


class Verdict:
    """What the oracle found, and the `record` that it read from the history.

    `expected` and `possible` count deliveries of the notifications that were `checked`.
    """

    def __init__(self, record: SessionRecord) -> None:
        self.record = record
        self.violations: list[violations.Violation] = list(record.violations)
        self.expected = 0
        self.possible = 0
        self.checked = 0


# From one broker to another: the numbers of the links that have to be crossed, None if it can be any.
Way = Callable[[str, str], frozenset[int] | None]


def judge(history: History, *, advertisements: bool, way: Way = lambda one, other: None) -> Verdict:
    """Compare what clients got with what they had to get."""
    return _Judge(history, advertisements, way).verdict


class _Judge:
    def __init__(self, history: History, advertisements: bool, way: Way) -> None:
        self._history = history
        self._way = way
        self._advertisements = advertisements
        record = replay(history, advertisements=advertisements)
        self.verdict = Verdict(record)
        self._found = self.verdict.violations
        self._sessions = record.sessions
        self._publications = record.publications
        self._by_filter: dict[Filter, list[tuple[SessionHistory, HeldSubscription]]] = {}
        for session in self._sessions.values():
            for subscription in session.subscriptions:
                self._by_filter.setdefault(subscription.filter, []).append((session, subscription))
        if history.crash:
            self._found.append(violations.Crashed(error=history.crash))
            return
        if history.unquiet:
            self._found.append(violations.NotAtRest(reason=history.unquiet))
        for broker, neighbour, reason in history.refused_links:
            self._found.append(violations.LinkRefused(broker=broker, neighbour=neighbour, reason=reason))
        self._deliveries()

    def _deliveries(self) -> None:
        got: dict[Name, list[Delivery]] = {name: [] for name in self._publications}
        latest: dict[tuple[str, str], TakenPublication] = {}
        for delivery in self._history.deliveries:
            name = (delivery.envelope.origin, delivery.envelope.sequence)
            publication = self._publications.get(name)
            if publication is None:
                self._found.append(violations.NeverPublished(**_about(delivery)))
                continue
            said, heard = publication.notification, delivery.envelope.notification
            if heard is not said and heard != said:
                self._found.append(violations.NeverPublished(**_about(delivery), altered=True))
            got[name].append(delivery)
            self._order(latest, delivery, publication)
        for name in self._chosen():
            self._notification(self._publications[name], got.pop(name))
        for deliveries in got.values():
            self._copies(deliveries)

    def _chosen(self) -> list[Name]:
        names = list(self._publications)
        affordable = max(1, _MOST_COMPARISONS // max(1, len(self._by_filter)))
        return names[:: max(1, -(-len(names) // affordable))]

    def _order(
        self, latest: dict[tuple[str, str], TakenPublication], delivery: Delivery, one: TakenPublication
    ) -> None:
        key = (delivery.session, one.session)
        before = latest.get(key)
        if before is None or before.number <= one.number:
            latest[key] = one
        elif not (self._excused(one, delivery.session) or self._excused(before, delivery.session)):
            disorder = violations.OutOfOrder(**_about(delivery), publisher=one.session, after=before.name)
            self._found.append(disorder)

    def _copies(self, deliveries: list[Delivery]) -> dict[str, Delivery]:
        copies: dict[str, Delivery] = {}
        for delivery in deliveries:
            if delivery.session in copies:
                self._found.append(violations.Duplicate(**_about(delivery)))
            copies[delivery.session] = delivery
        return copies

    def _notification(self, publication: TakenPublication, deliveries: list[Delivery]) -> None:
        verdict = self.verdict
        verdict.checked += 1
        copies = self._copies(deliveries)
        selecting: dict[str, list[HeldSubscription]] = {}
        for filter, holders in self._by_filter.items():
            if filter.matches(publication.notification):
                for session, subscription in holders:
                    selecting.setdefault(session.name, []).append(subscription)
        advertised = self._is_advertised(publication)
        for name, subscriptions in selecting.items():
            racing = [one for one in subscriptions if one.overlaps(publication.begin, publication.end)]
            verdict.possible += bool(racing)
            known = advertised and _known_throughout(racing, publication.begin, publication.end)
            if known and not self._excused(publication, name):
                verdict.expected += 1
                if name not in copies:
                    self._found.append(
                        violations.Missing(
                            session=name, notification=publication.name, filter=str(racing[0].filter)
                        )
                    )
        for delivery in deliveries:
            self._delivery(delivery, selecting.get(delivery.session, []))

    def _delivery(self, delivery: Delivery, selecting: list[HeldSubscription]) -> None:
        held = [one for one in selecting if one.begin <= delivery.moment < one.end]
        if not held:
            ended = any(one.end <= delivery.moment for one in selecting)
            self._found.append(violations.Unwanted(**_about(delivery), ended=ended))
            return
        expected = tuple(sorted(handle for one in held for handle in one.handles_at(delivery.moment)))
        got = delivery.handles
        if expected != tuple(sorted(got)):
            self._found.append(violations.WrongHandles(**_about(delivery), expected=expected, got=got))

    def _is_advertised(self, publication: TakenPublication) -> bool:
        if not self._advertisements:
            return True
        covering = [
            one
            for one in self._sessions[publication.session].advertisements
            if one.advertisement.covers(publication.notification)
        ]
        return _known_throughout(covering, publication.begin, publication.end)

    def _excused(self, publication: TakenPublication, session: str) -> bool:
        """Whether it may have been lost because of a link on its way to the session."""
        missing = {
            link
            for begin, end, link in self._history.disturbances
            if begin <= publication.end and publication.begin <= end
        }
        if not missing or session not in self._sessions:
            return bool(missing)
        way = self._way(self._sessions[publication.session].broker, self._sessions[session].broker)
        return way is None or not way.isdisjoint(missing)


def _about(delivery: Delivery) -> dict[str, Any]:
    """What a violation says of the delivery that it is about."""
    return {"session": delivery.session, "notification": (delivery.envelope.origin, delivery.envelope.sequence)}


def _known_throughout(held: Sequence[HeldSpan], begin: int, end: int) -> bool:
    """Whether at every moment from `begin` to `end` at least one of them is known and held."""
    reached = begin  # up to here, but not including it, all is well
    for one in sorted(held, key=lambda one: one.known):
        if one.known > reached:
            return False
        reached = max(reached, one.end)
        if reached > end:
            return True
    return False
