"""Bytes that no broker should be impressed by, drawn from a seed.

What comes out right by accident, so that the broker would have to do what it says, is drawn again.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any, get_args

import msgspec

from palio import InvalidNotification, Notification
from palio.model.body import Body
from palio.protocol.durable.subscriptions import Acknowledged, Attach, Change, Detach, Rejected
from palio.protocol.encoding import UnreadableMessage, decode, encode
from palio.protocol.frames import MAX_FRAME, frame
from palio.protocol.greeting import PROTOCOL, Greet, Role, Welcome
from palio.protocol.inquiries import Inspect
from palio.protocol.invocations import Invoke
from palio.protocol.requests import Publish
from palio.protocol.vocabulary import Answer, PeerMessage
from palio.routing.occurrences import Close, LinkMessage, Open
from tests.protocol.test_encoding import FILTER, MESSAGES

DEEP = 100_000
VALID = [
    *MESSAGES,
    Attach("d", FILTER),
    Change("d", FILTER),
    Acknowledged("d", (1, 2)),
    Rejected("d", (3,)),
    Detach("d"),
    Inspect(1, "stats", {"a": [1, {"b": 2}]}),
    Invoke(1, "families.ls", {"a": [1, {"b": 2}]}),
    Greet(PROTOCOL, Role.CLIENT, "c"),
    Welcome(PROTOCOL, "b"),
]
_FOR_OTHERS = frozenset(
    {*get_args(Answer), *get_args(PeerMessage), *get_args(LinkMessage), Open, Close, Welcome}
)
_TAGS = sorted({msgspec.msgpack.decode(encode(one))["type"] for one in VALID})
_FIELDS = sorted({field for one in VALID for field in one.__struct_fields__})


class Malformed:
    """Draws frames; counts them by kind."""

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self._kinds: list[Callable[[], bytes]] = [
            self._noise,
            self._framed_noise,
            self._truncated,
            self._mutated,
            self._mutated,
            self._too_long,
            self._wrong_types,
            self._nested,
            self._promising,
            self._not_a_notification,
            self._out_of_place,
            self._empty,
        ]

    def draw(self, role: Role | None) -> bytes:
        """The bytes of one frame, or what pretends to be one, for who has greeted in a role or not at all."""
        kind = self._random.choice(self._kinds)
        if kind == self._out_of_place and role is Role.PEER:
            kind = self._empty  # a neighbour may say such things
        self.counts[kind.__name__.strip("_").replace("_", " ")] += 1
        return kind()

    def _noise(self) -> bytes:
        # The first byte makes it a frame that is never complete, or one that is too long.
        return self._random.randbytes(self._random.randint(1, 200))

    def _framed_noise(self) -> bytes:
        return self._checked(lambda: self._random.randbytes(self._random.randint(1, 200)))

    def _truncated(self) -> bytes:
        data = frame(encode(self._random.choice(VALID)))
        return data[: self._random.randrange(1, len(data))]

    def _mutated(self) -> bytes:
        def mutated() -> bytes:
            data = bytearray(encode(self._random.choice(VALID)))
            for _ in range(self._random.randint(1, 4)):
                at = self._random.randrange(len(data))
                match self._random.randrange(4):
                    case 0:
                        data[at] = self._random.randrange(256)
                    case 1:
                        del data[at : at + self._random.randint(1, 4)]
                    case 2:
                        data[at:at] = self._random.randbytes(self._random.randint(1, 4))
                    case _:
                        data += data[at:]
                data = data or bytearray(b"\xc1")
            return bytes(data)

        return self._checked(mutated)

    def _too_long(self) -> bytes:
        return self._random.randint(MAX_FRAME + 1, 2**32 - 1).to_bytes(4) + self._random.randbytes(20)

    def _wrong_types(self) -> bytes:
        def wrong() -> bytes:
            fields = {
                field: self._value() for field in self._random.sample(_FIELDS, self._random.randint(0, 6))
            }
            return msgspec.msgpack.encode({"type": self._random.choice(_TAGS)} | fields)

        return self._checked(wrong)

    def _value(self, depth: int = 3) -> Any:
        match self._random.randrange(9 if depth else 7):
            case 0:
                return self._random.choice((None, True, False))
            case 1:
                return self._random.randint(-(2**63), 2**64 - 1)
            case 2:
                return self._random.choice((float("nan"), float("inf"), -0.0, 1e308))
            case 3:
                return self._random.randbytes(self._random.randint(0, 9))
            case 4:
                return "x" * self._random.choice((0, 1, 300, 5_000))
            case 5:
                return msgspec.msgpack.Ext(self._random.randrange(128), b"ext")
            case 6:
                return "price > > 3"
            case 7:
                return [self._value(depth - 1) for _ in range(self._random.randint(0, 4))]
            case _:
                return {self._random.choice("abc"): self._value(depth - 1)}

    def _nested(self) -> bytes:
        depth = self._random.choice((50, 1_000, DEEP))
        inside = self._random.choice((b"\x91", b"\x81\xa1a")) * depth + b"\xc0"
        if self._random.random() < 0.5:  # where anything may be
            head = msgspec.msgpack.encode({"type": "inspect", "number": 1, "what": "stats"})
            return frame(b"\x84" + head[1:] + b"\xa8argument\x81\xa1a" + inside)
        return frame(inside)

    def _promising(self) -> bytes:
        """Says that an enormous number of things will follow."""
        head = self._random.choice((b"\xdd", b"\xdf", b"\xdb", b"\xc6")) + self._random.choice(
            (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x10\x00\x00\x00")
        )
        field = self._random.choice(("notifications", "handles", "envelopes", "argument"))
        tag = self._random.choice(("publish", "acknowledged", "inspect", "subscribe"))
        start = b"\x82\xa4type" + msgspec.msgpack.encode(tag) + msgspec.msgpack.encode(field)
        return frame(self._random.choice((head, start + head, start + b"\x91" + head)))

    def _not_a_notification(self) -> bytes:
        """In a frame that is right, something that nobody may publish."""
        attributes = self._random.choice(
            (
                b"\xc1",
                b"",
                b"\x90",
                b"\x81\xa1a\xc0",
                b"\x81\xa1a\x80",
                b"\x81\xa1a\xcb\x7f\xf8\0\0\0\0\0\0",  # not a number
                b"\x82\xa1a\x01\xa1a\x02",
                b"\x81\xa0\x01",
                b"\x81\xa1a\xa1\xff",
                b"\x81\xa1a\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
                self._random.randbytes(self._random.randint(1, 30)),
            )
        )
        body = Body(attributes, id=self._random.choice((None, "x" * 100)))
        try:
            _ = Notification.of_body(body).attributes
        except InvalidNotification:
            wrong = Notification.of_body(body)
            right = Notification({"a": 1})
            several = (right, wrong, right) if self._random.random() < 0.5 else (wrong,)
            return frame(encode(Publish(several, self._random.randint(0, 9))))
        return self._not_a_notification()

    def _out_of_place(self) -> bytes:
        """A message that no client sends, or not now."""
        return frame(encode(self._random.choice([one for one in VALID if type(one) in _FOR_OTHERS])))

    def _empty(self) -> bytes:
        return frame(b"")

    def _checked(self, draw: Callable[[], bytes]) -> bytes:
        """Drawn until it cannot be read."""
        while True:
            payload = draw()
            try:
                decode(payload)
            except UnreadableMessage:
                return frame(payload)
