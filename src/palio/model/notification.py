"""`Notification`: what a publisher says. Typed attributes, and a few properties that are no attributes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, cast

from palio.model import cloudevents, encoding, jsontext
from palio.model.attributes import Attributes
from palio.model.body import DEFAULT_PRIORITY, MAX_ID_CHARACTERS, MAX_PRIORITY, Body
from palio.model.errors import InvalidNotification
from palio.model.flatten import flatten
from palio.model.values import MAX_PAYLOAD_BYTES, Value, check_text, check_time


class Notification(Attributes):
    """An immutable notification.

    `attributes` maps names to values. The generic properties are `id`, `time` (of publication), `lifetime`,
    `priority` (0 to 9, 9 first) and an opaque `payload`. It is a mapping, and has a getter for each kind
    (`number("price")`, `text("symbol")`, …). `unindexed` lists, by dotted name, the content that
    attributes cannot hold: it is kept, as JSON, in the payload, and filters do not see it.

    Nested mappings flatten to dotted names and None means absent. Raises `InvalidNotification`, which names
    the path of what is wrong; with `strict=True` also for content that would be unindexed.

    There are two forms, the content and the `body` (as bytes). Each is made from the other when it is first
    asked for, and kept.
    """

    __slots__ = ("attributes", "body", "id", "lifetime", "payload", "priority", "time", "unindexed")

    body: Body
    attributes: Mapping[str, Value]
    id: str | None
    time: datetime | None
    lifetime: timedelta | None
    priority: int
    payload: bytes | None
    unindexed: tuple[str, ...]

    def __init__(
        self,
        attributes: Mapping[str, Any],
        *,
        id: str | None = None,
        time: datetime | None = None,
        lifetime: timedelta | float | None = None,
        priority: int = DEFAULT_PRIORITY,
        payload: bytes | None = None,
        strict: bool = False,
    ) -> None:
        flat = flatten(attributes, strict=strict)
        self.attributes = MappingProxyType(flat.attributes)
        self.unindexed = tuple(flat.unindexed)
        self.payload = _checked_payload(payload, flat.unindexed)
        self.id = _checked_id(id)
        self.time = None if time is None else check_time(time, "time")
        self.lifetime = _checked_lifetime(lifetime)
        if isinstance(priority, bool) or not isinstance(priority, int) or not 0 <= priority <= MAX_PRIORITY:
            raise InvalidNotification("priority", f"A priority is a number from 0 to {MAX_PRIORITY}.")
        self.priority = priority

    @classmethod
    def of_values(cls, attributes: dict[str, Value]) -> Notification:
        """From attributes that are known to be in their one form already: nothing is checked or flattened."""
        notification = cls.__new__(cls)
        notification.attributes = MappingProxyType(attributes)
        notification.id = notification.time = notification.lifetime = notification.payload = None
        notification.priority = DEFAULT_PRIORITY
        notification.unindexed = ()
        return notification

    @classmethod
    def of_body(cls, body: Body) -> Notification:
        """From its bytes, which are read when they are first needed; `InvalidNotification` is raised then."""
        notification = cls.__new__(cls)
        notification.body = body
        return notification

    def __getattr__(self, name: str) -> Any:
        # Only called for what is not there yet: one of the two forms.
        if name == "body":
            self.body = Body(
                self.encode(), self.id, self.time, self.lifetime, self.priority, self.payload, self.unindexed
            )
        elif name == "attributes":
            self.attributes = MappingProxyType(encoding.decode(self.body.attributes))
        elif name in Notification.__slots__:
            body = self.body
            self.id, self.time, self.lifetime = body.id, body.time, body.lifetime
            self.priority, self.payload, self.unindexed = body.priority, body.payload, body.unindexed
        else:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return object.__getattribute__(self, name)

    @classmethod
    def from_json(cls, text: str | bytes, *, strict: bool = False, **properties: Any) -> Notification:
        """From the text of a JSON object. A number is an int iff it is written without point or exponent."""
        document = jsontext.read(text)
        if not isinstance(document, dict):
            raise InvalidNotification("$", "A notification is a JSON object.")
        return cls(document, strict=strict, **properties)

    @classmethod
    def from_cloudevent(
        cls, event: str | bytes | Mapping[str, Any], *, strict: bool = False, by_source: bool = False
    ) -> Notification:
        """From a CloudEvent in structured JSON: context attributes by their names, data as `data.…`.

        The id is the event's own, or (`by_source`) source and id together, for whoever publishes for several.
        """
        document = jsontext.read(event) if isinstance(event, (str, bytes)) else event
        return cls._from_event(document, "$", strict, by_source)

    @classmethod
    def from_cloudevents(
        cls, batch: str | bytes | list[Any], *, strict: bool = False, by_source: bool = False
    ) -> list[Notification]:
        """From a batch of CloudEvents, a JSON array; one bad event refuses all, and is named."""
        document = jsontext.read(batch) if isinstance(batch, (str, bytes)) else batch
        if not isinstance(document, list):
            raise InvalidNotification("$", "A batch of CloudEvents is a JSON array.")
        return [
            cls._from_event(event, f"$[{index}]", strict, by_source) for index, event in enumerate(document)
        ]

    @classmethod
    def _from_event(cls, document: Any, path: str, strict: bool, by_source: bool) -> Notification:
        content = cloudevents.read_event(document, path)
        id = cloudevents.identity(content.attributes["source"], content.id) if by_source else content.id
        try:
            return cls(content.attributes, id=id, payload=content.payload, strict=strict)
        except InvalidNotification as problem:
            inner = problem.path.removeprefix("$") if problem.path.startswith("$") else f".{problem.path}"
            raise InvalidNotification(path + inner, problem.reason) from None

    def to_json(self) -> str:
        """The content as one line of JSON that `from_json` reads back; properties are not part of it."""
        return json.dumps(cloudevents.flat_content_of(self), ensure_ascii=False, separators=(",", ":"))

    def encode(self) -> bytes:
        """The attributes as one MessagePack map that `decode` reads back; equal attributes give equal bytes.

        The properties (id, time, lifetime, priority, and the payload with all that is unindexed) are not part
        of it: they travel in the envelope.
        """
        return encoding.encode(self.attributes)

    @classmethod
    def decode(cls, data: bytes) -> Notification:
        """From what `encode` gives. Raises `InvalidNotification`, whatever the bytes are, and nothing else."""
        return cls.of_values(encoding.decode(data))

    def _key(self) -> tuple[Any, ...]:
        typed = frozenset((name, _types(value), value) for name, value in self.attributes.items())
        return typed, self.id, self.time, self.lifetime, self.priority, self.payload, self.unindexed

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Notification) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"Notification({dict(self.attributes)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        state = {name: getattr(self, name) for name in Notification.__slots__ if name != "body"}
        return _rebuild, (state | {"attributes": dict(self.attributes)},)


def _types(value: Value) -> tuple[type, ...]:
    """Tells apart what Python calls equal: 1, 1.0 and True, also in lists."""
    return (type(value), *map(type, value)) if isinstance(value, tuple) else (type(value),)


def _rebuild(state: dict[str, Any]) -> Notification:
    notification = Notification.__new__(Notification)
    for name, value in state.items():
        setattr(notification, name, value)
    notification.attributes = MappingProxyType(state["attributes"])
    return notification


def _checked_id(id: object) -> str | None:
    if id is None:
        return None
    if not isinstance(id, str) or not 0 < len(id) <= MAX_ID_CHARACTERS:
        raise InvalidNotification("id", f"An id is a string of 1 to {MAX_ID_CHARACTERS} characters.")
    check_text(id, "id")
    return id


def _checked_lifetime(lifetime: timedelta | float | None) -> timedelta | None:
    if lifetime is None:
        return None
    try:
        span = lifetime if isinstance(lifetime, timedelta) else timedelta(seconds=lifetime)
    except (TypeError, ValueError, OverflowError):
        raise InvalidNotification("lifetime", "A lifetime is a timedelta or a number of seconds.") from None
    if span <= timedelta(0):
        raise InvalidNotification("lifetime", "A lifetime must be longer than nothing.")
    return span


def _checked_payload(payload: object, unindexed: dict[str, Any]) -> bytes | None:
    if payload is not None and not isinstance(payload, (bytes, bytearray, memoryview)):
        raise InvalidNotification("payload", "A payload is bytes.")
    if unindexed:
        if payload is not None:
            name = next(iter(unindexed))
            raise InvalidNotification(
                f"$.{name}", "This content has to go into the payload, but there is a payload already."
            )
        payload = jsontext.write(unindexed)
    raw = None if payload is None else bytes(cast("bytes", payload))
    if raw is not None and len(raw) > MAX_PAYLOAD_BYTES:
        raise InvalidNotification(
            "payload", f"This payload has {len(raw):,} bytes; the limit is {MAX_PAYLOAD_BYTES:,}."
        )
    return raw
