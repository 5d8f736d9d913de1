"""What bytes from outside meet first: frames, messages, notifications, filters, advertisements, JSON.

The first byte chooses one of them. Whatever the rest is, the answer is a value or one of our errors; and what
was read can be written and read again, with the same meaning. `python -m tests.fuzz` lets atheris choose bytes,
and the tests run the corpus.
"""

from __future__ import annotations

from collections.abc import Callable

from palio.matching import MatchIndex
from palio.model.advertisement import Advertisement
from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.routing.protocol import GREETING_FRAME, Frames, frame
from palio.routing.wire import decode, encode, refused_subject


def frames(data: bytes) -> None:
    """However a stream is cut, the frames are the same; and no more is held than the limit and a header."""
    try:
        whole = Frames(GREETING_FRAME).feed(data)
    except PalioError:
        return
    cut = Frames(GREETING_FRAME)
    size = 1 + len(data) % 7
    pieces = [piece for at in range(0, len(data), size) for piece in cut.feed(data[at : at + size])]
    assert pieces == whole
    assert len(cut) <= GREETING_FRAME + 4
    assert b"".join(map(frame, whole)) == data[: sum(len(one) + 4 for one in whole)]


def messages(data: bytes) -> None:
    """A message is read, or it is said that it is none; what was read is the same after another round."""
    refused_subject(data)
    try:
        message = decode(data)
    except PalioError:
        return
    again = encode(message)
    assert encode(decode(again)) == again


def notifications(data: bytes) -> None:
    """Python's reading and the compiled core's agree on what is a notification."""
    try:
        attributes: object = Notification.decode(data).attributes
    except PalioError:
        attributes = None
    try:
        MatchIndex().match_encoded([data])
        core = True
    except PalioError:
        core = False
    assert core is (attributes is not None)


def filters(data: bytes) -> None:
    """A filter's text means the same as the text of its normal form."""
    text = data.decode("utf-8", "replace")
    try:
        filter = Filter.parse(text)
        again = Filter.parse(str(filter))
    except PalioError:
        return
    assert again == filter
    example = filter.example()
    if example is not None:
        assert filter.matches(example)
        filter.explain(example)


def advertisements(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    try:
        advertisement = Advertisement.parse(text)
        again = Advertisement.parse(str(advertisement))
    except PalioError:
        return
    assert again == advertisement


def json(data: bytes) -> None:
    """JSON becomes a notification that can be encoded and read again."""
    for read in (Notification.from_json, Notification.from_cloudevent):
        try:
            notification = read(data)
            encoded = notification.encode()
        except PalioError:
            continue
        assert Notification.decode(encoded).attributes == notification.attributes


DECODERS: tuple[Callable[[bytes], None], ...] = (
    frames,
    messages,
    notifications,
    filters,
    advertisements,
    json,
)


def run(data: bytes) -> None:
    """One input: its first byte says for whom the rest is."""
    if data:
        DECODERS[data[0] % len(DECODERS)](data[1:])
