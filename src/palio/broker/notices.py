"""Notices: what a broker has noticed itself, published there as an event like any other.

Who may subscribe to such events, and which of them come over a border, is a matter of rights and filters, as it
is for any event. All of them have `palio.notice`, which says what kind of notice it is:

*A gap* (`palio.notice = "gap"`): a journal came back older than it was, or some of it is damaged. Each
broker that notices says so once: the one whose journal it is, and those that are home to who has read further,
however many durable subscriptions these are. Of those concerned at the same moment the first place counts.

*A refusal* (`palio.notice = "refused"`): a document that was confirmed, and that a stage or reading has refused
afterwards. It has the document.

*A broker is forgotten* (`palio.notice = "forgotten"`): each broker that hears of it says so once, and what its
own journal gives up by that.

*The overlay has changed* (`palio.notice = "overlay"`): what has happened to a link of the broker that says so,
or to its part of the network. Its attributes begin with `palio.overlay.`: only brokers publish such, and only
who may inspect sees them (`routing.scopes`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

from palio.model.advertisement import Advertisement
from palio.model.notification import Notification
from palio.model.values import Value
from palio.protocol.durable.lineage import JournalGap
from palio.protocol.requests import Advertise, Publish
from palio.routing.durable.effects import ReportForgotten, ReportGap
from palio.routing.occurrences import Open
from palio.routing.overlay.effects import OverlayEvent
from palio.routing.scopes import INSPECTED

NOTICE = "palio.notice"
# Who publishes them; the session, which no client can have: the names of these are not empty.
PUBLISHER = "palio"
SESSION = ""
# Gaps of which is remembered that they were told; whoever has more of them hears of one again.
MOST_REMEMBERED = 1_000
# What is said of links: attributes, by the fields of an `OverlayEvent`.
_OVERLAY = {
    "what": f"{INSPECTED}event",
    "broker": f"{INSPECTED}neighbour",
    "why": f"{INSPECTED}why",
    "reason": f"{INSPECTED}reason",
    "seconds": f"{INSPECTED}seconds",
    "former": f"{INSPECTED}former",
    "part": f"{INSPECTED}part",
    "looks": f"{INSPECTED}looks",
}

# What tells gaps apart: whose journal, in which incarnation, why; and where, of what is damaged.
_Told: TypeAlias = tuple[str, str, str, int]


class Notices:
    """What a broker has to tell. `handle` is its router's; `advertises` says if publishers have to."""

    def __init__(
        self, broker: str, handle: Callable[[Any, str], None], *, advertises: Callable[[], bool]
    ) -> None:
        self._broker = broker
        self._handle = handle
        self._advertises = advertises
        self._told: dict[_Told, None] = {}
        self._gaps: dict[_Told, ReportGap] = {}
        self._forgotten: list[ReportForgotten] = []
        self._overlay: list[Notification] = []
        self._is_open = False
        self._is_closed = False

    def close(self) -> None:
        """Publish nothing any more: what is published would not be kept."""
        self._is_closed = True

    def gap(self, effect: ReportGap) -> bool:
        """Note that a gap is to be told. Returns whether nothing else was waiting to be."""
        gap, why = effect.gap, effect.why
        key = gap.origin, effect.fork, why, gap.after if why == "damaged" else 0
        if key in self._told:
            return False
        first = not self._waits
        known = self._gaps.get(key)
        if known is None or gap.after < known.gap.after:
            self._gaps[key] = effect
        return first

    def forgotten(self, effect: ReportForgotten) -> bool:
        """Note that it is to be told that a broker is forgotten. Returns whether nothing else was waiting."""
        first = not self._waits
        self._forgotten.append(effect)
        return first

    def overlay(self, event: OverlayEvent, at: float) -> bool:
        """Note that it is to be told what has happened to links. Returns whether nothing else was waiting."""
        first = not self._waits
        said = {_OVERLAY[name]: getattr(event, name) for name in _OVERLAY}
        content = {
            NOTICE: "overlay",
            "palio.broker": self._broker,
            **{name: value for name, value in said.items() if value not in ("", None)},
            "palio.noticed": datetime.fromtimestamp(at, UTC),
        }
        self._overlay.append(Notification(content))
        return first

    @property
    def _waits(self) -> bool:
        return bool(self._gaps or self._forgotten or self._overlay)

    def publish(self) -> None:
        """Publish what was noted."""
        gaps, self._gaps = self._gaps, {}
        forgotten, self._forgotten = self._forgotten, []
        overlay, self._overlay = self._overlay, []
        self._told.update(dict.fromkeys(gaps))
        while len(self._told) > MOST_REMEMBERED:
            del self._told[next(iter(self._told))]
        notifications = [self._notification(effect.gap, effect.why) for effect in gaps.values()]
        self._publish([*notifications, *map(self._of_forgotten, forgotten), *overlay])

    def tell(self, kind: str, content: Mapping[str, Value], id: str, payload: bytes | None) -> None:
        """Publish a notice of another kind. Of those with the same id, one is."""
        said = {NOTICE: kind, "palio.broker": self._broker, **content}
        self._publish([Notification(said, id=id, payload=payload)])

    def _publish(self, notifications: list[Notification]) -> None:
        if self._is_closed:
            return
        if not self._is_open:
            self._is_open = True
            self._handle(Open(), SESSION)
            if self._advertises():
                self._handle(Advertise("notices", Advertisement.parse(f"exists({NOTICE})")), SESSION)
        self._handle(Publish(tuple(notifications), 0, PUBLISHER), SESSION)

    def _notification(self, gap: JournalGap, why: str) -> Notification:
        upto = {} if gap.upto is None else {"palio.upto": gap.upto}
        content = {
            NOTICE: "gap",
            "palio.broker": self._broker,
            "palio.origin": gap.origin,
            "palio.after": gap.after,
            **upto,
            "palio.why": why,
            "palio.noticed": datetime.fromtimestamp(gap.noticed, UTC),
        }
        return Notification(content)

    def _of_forgotten(self, effect: ReportForgotten) -> Notification:
        content = {
            NOTICE: "forgotten",
            "palio.broker": self._broker,
            "palio.forgotten": effect.broker,
            "palio.why": effect.why,
            "palio.subscriptions": effect.readers,
            "palio.after": effect.read,
            "palio.upto": effect.head,
            "palio.noticed": datetime.fromtimestamp(effect.at, UTC),
        }
        return Notification(content)
