"""`Sharing`: how shared records get to every broker, and how a broker finds out that all have them.

What is news goes on to all neighbours but the one it came from. A new neighbour is told what it may not have
before anything else: so when a row of somebody's subscription comes, what it depends on is there. Neighbours of
an older version are told nothing, and asked nothing.

Verifying is an echo. Whoever wants to know asks its neighbours (`Verify`); a broker that hears the question
asks its other neighbours, and answers (`Verified`) when they have answered, or have asked it the same, and when
all that it has is on its own disk. As links keep order, a question comes after all that its sender had.

1. Every broker that can be reached hears every record, over whatever links there are; none goes around for
   ever, as nothing is told on that is no news.
2. A record is told on at once, and written at once. What could not be written is tried again until it is.
3. A wave that ends well (`whole`) says: every broker to which there was a way of links, all the time since it
   was begun, has on its disk what the asker had then. For each link on which an answer was awaited when it was
   lost makes the wave not whole, and then the asker begins another one: what was behind that link may be
   reached by other ways.
4. A broker has at most one wave under way, and `MOST_WAVES` of others; who wants to know meanwhile waits for
   the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from palio.protocol.sharing import Share, SharedRecord, Verified, Verify
from palio.routing.durable.effects import Append, KeyedRecord
from palio.routing.effects import Send, SetTimer, SharedChanged, SharedReady
from palio.routing.links import NeighbourLink
from palio.routing.shared import Name, SharedRecords

if TYPE_CHECKING:
    from palio.routing.core import Core

TIMER = "shared"
# Seconds until something that did not work is tried again: a write, or a wave on which a link was lost.
AGAIN = 0.25
# Bytes of values after which another message, or another write, begins.
BATCH = 256 * 1024
# Waves of other brokers that are under way, and brokers whose last wave is remembered: more than there are
# brokers in any network that we know of.
MOST_WAVES = 16_384
# The kind of the keyed records by which a store keeps shared ones.
KIND = "shared"
INCARNATION_BITS = 30  # what follows is a number on the wire, which has at most 62 bits


class _Wave(msgspec.Struct, eq=False):
    """A question under way: who has asked (None: this broker), and which neighbours have not answered."""

    number: int
    parent: str | None
    waiting: set[str]
    whole: bool = True
    saved: bool = False


class Sharing:
    """This broker's part in sharing records."""

    def __init__(self, core: Core, kept: Iterable[KeyedRecord] = ()) -> None:
        self._core = core
        self.records = SharedRecords(core.broker, _readable(kept))
        self._links: dict[str, None] = {}  # to neighbours that know shared records
        self._unsaved: dict[Name, None] = {}
        self._saving = False
        self._when_saved: list[Callable[[], None]] = []
        self._waves: dict[str, _Wave] = {}
        self._last: dict[str, int] = {}  # by origin: the number of the last wave that has ended here
        self._number = core.configuration.incarnation << INCARNATION_BITS
        self._asking: tuple[int, ...] = ()  # tokens that this broker's wave is for, and those for the next one
        self._next: list[int] = []
        self._again = False

    # Of this broker

    def put(self, records: tuple[SharedRecord, ...], token: int, *, everywhere: bool) -> None:
        """Share new versions; the token is ready when they are on disk, here or everywhere in reach."""
        self._take(records, None)
        self._call_when_saved((lambda: self._verify(token)) if everywhere else (lambda: self._ready((token,))))

    def _ready(self, tokens: tuple[int, ...]) -> None:
        self._core.effects.append(SharedReady(tokens))

    # Links

    def link_gained(self, link: NeighbourLink, digests: bytes | None) -> None:
        """Handles a link that may be used now, and what the neighbour has said of what it has."""
        if digests is None:
            return
        self._links[link.broker] = None
        if digests != self.records.digests():
            self._tell(link.broker, self.records.unlike(digests))

    def link_lost(self, broker: str) -> None:
        if self._links.pop(broker, 0) == 0:
            return
        for origin, wave in list(self._waves.items()):
            if wave.parent == broker:
                self._end(origin, wave)  # there is nobody to be answered
            elif broker in wave.waiting:
                wave.whole = False
                self._answered(origin, wave, broker)

    def _tell(self, broker: str, records: Iterable[SharedRecord]) -> None:
        self._core.effects += [Send(broker, Share(some)) for some in _batches(records)]

    # Records

    def hear(self, source: str, share: Share) -> str | None:
        """Handles records of a neighbour. Returns why the link cannot be used any more, if that is so."""
        if source not in self._links:
            return None
        if not self.records.room_for(share.records):
            return (
                f"What {source} and {self._core.broker} share has more bytes than a broker keeps; remove some "
                "of it at one of them before they are linked."
            )
        self._take(share.records, source)
        return None

    def _take(self, records: Iterable[SharedRecord], source: str | None) -> None:
        news = self.records.take(records)
        if not news:
            return
        for name in self._links:
            if name != source:
                self._tell(name, news)
        self._core.effects.append(SharedChanged(news))
        self._unsaved |= dict.fromkeys([(record.kind, record.key) for record in news])
        self._save()

    # The disk

    def _save(self) -> None:
        if self._saving or not self._unsaved:
            return
        if self._core.durable is None:
            self._saved()
            return
        latest = [self.records.version(*name) for name in self._unsaved]
        some = next(_batches([record for record in latest if record is not None]))
        for record in some:
            del self._unsaved[record.kind, record.key]
        self._saving = True
        desk = self._core.durable.parts.desk
        token = desk.token(self._saved, lambda _: self._not_saved(some))
        written = tuple([KeyedRecord(KIND, _key(record), _encode(record)) for record in some])
        self._core.effects.append(Append(token, (), "", written))

    def _saved(self) -> None:
        self._saving = False
        if self._core.durable is None:
            self._unsaved.clear()
        self._save()
        if not self._saving:
            waiting, self._when_saved = self._when_saved, []
            for then in waiting:
                then()

    def _not_saved(self, records: tuple[SharedRecord, ...]) -> None:
        self._saving = False
        self._unsaved |= dict.fromkeys([(record.kind, record.key) for record in records])
        self._try_again()

    def _call_when_saved(self, then: Callable[[], None]) -> None:
        """Do something once all is on disk that is known now, which may be at once."""
        if self._saving or self._unsaved:
            self._when_saved.append(then)
        else:
            then()

    def _try_again(self) -> None:
        if not self._again:
            self._again = True
            self._core.effects.append(SetTimer(TIMER, self._core.now + AGAIN))

    def on_timer(self) -> None:
        self._again = False
        self._save()
        self._begin()

    # Verifying

    def _verify(self, token: int) -> None:
        self._next.append(token)
        self._begin()

    def _begin(self) -> None:
        if self._asking or not self._next:
            return
        self._asking, self._next = tuple(self._next), []
        self._number += 1
        self._start(self._core.broker, self._number, None)

    def _start(self, origin: str, number: int, parent: str | None) -> None:
        others = [name for name in self._links if name != parent]
        wave = self._waves[origin] = _Wave(number, parent, set(others))
        self._core.effects += [Send(name, Verify(origin, number)) for name in others]

        def saved() -> None:
            wave.saved = True
            self._settle(origin, wave)

        self._call_when_saved(saved)

    def asked(self, source: str, question: Verify) -> None:
        """Handles a question that a neighbour passes on."""
        origin, number = question.origin, question.number
        if source not in self._links:
            return
        wave = self._waves.get(origin)
        if wave is not None and wave.number == number:
            if source in wave.waiting:  # both have asked the other
                self._answered(origin, wave, source)
            elif source != wave.parent:  # over a link that has come up since
                self._core.effects.append(Send(source, Verified(origin, number, whole=True)))
        elif origin == self._core.broker or number <= self._last.get(origin, -1):
            self._core.effects.append(Send(source, Verified(origin, number, whole=True)))
        elif len(self._waves) >= MOST_WAVES:
            self._core.effects.append(Send(source, Verified(origin, number, whole=False)))
        else:
            self._start(origin, number, source)

    def heard(self, source: str, answer: Verified) -> None:
        """Handles the answer of a neighbour."""
        wave = self._waves.get(answer.origin)
        if wave is not None and wave.number == answer.number and source in wave.waiting:
            wave.whole = wave.whole and answer.whole
            self._answered(answer.origin, wave, source)

    def _answered(self, origin: str, wave: _Wave, neighbour: str) -> None:
        wave.waiting.discard(neighbour)
        self._settle(origin, wave)

    def _settle(self, origin: str, wave: _Wave) -> None:
        """Answers, if all have answered and all is on disk."""
        if wave.waiting or not wave.saved or self._waves.get(origin) is not wave:
            return
        self._end(origin, wave)
        if wave.parent is not None:
            self._core.effects.append(Send(wave.parent, Verified(origin, wave.number, wave.whole)))
            return
        tokens, self._asking = self._asking, ()
        if wave.whole:
            self._ready(tokens)
            self._begin()
        else:
            self._next = [*tokens, *self._next]
            self._try_again()

    def _end(self, origin: str, wave: _Wave) -> None:
        del self._waves[origin]
        self._last.pop(origin, None)
        if len(self._last) >= MOST_WAVES:
            del self._last[next(iter(self._last))]
        self._last[origin] = wave.number

    @property
    def link_handlers(self) -> dict[type, Callable[[str, Any], None]]:
        """What comes from neighbours and is no reason to give up their links."""
        return {Verify: self.asked, Verified: self.heard}


def _batches(records: Iterable[SharedRecord]) -> Iterator[tuple[SharedRecord, ...]]:
    """Records in pieces that are sent or written together."""
    some: list[SharedRecord] = []
    size = 0
    for record in records:
        length = len(record.key) + len(record.value or b"")
        if some and size + length > BATCH:
            yield tuple(some)
            some, size = [], 0
        some.append(record)
        size += length
    if some:
        yield tuple(some)


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(SharedRecord)


def _key(record: SharedRecord) -> str:
    return f"{record.kind} {record.key}"


def _readable(kept: Iterable[KeyedRecord]) -> Iterator[SharedRecord]:
    """Those that can be read. What cannot, neighbours tell again."""
    for one in kept:
        try:
            yield _decoder.decode(one.value or b"")
        except (msgspec.DecodeError, ValueError):
            continue
