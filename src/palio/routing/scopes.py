"""Scopes: what the owner of a session or of a durable subscription may see at most, and the check of that.

Rights are filters. Where a router is `scoped`, sessions and durable subscriptions are called `owner/name`, and
the shell says what each owner may see and publish (`SetScope`); others may do neither. Then

- what a subscription asks for, *f*, is held and told to the network as *f* and the scope: what nobody may have
  is not carried around. At the door both are held to the limits together (`broker.request_guard`); only when
  rights change later can that become too large, and then more is held;
- whatever is about to leave for a session is matched against the scope as it is at that moment. That check is
  what counts. What comes live is matched by the subscription that is held, which is *f* and the scope; where
  more is held as that would be too large, and for spools, history, requests and replies, it is matched again.

What brokers say of their links (attributes that begin with `palio.overlay.`) only those owners see who may
inspect, whatever else they may see.

When a scope changes, what is held changes in the same step, before anything else is matched; durable ones catch
up from where they are, and surveys that would mix two scopes are refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from palio.matching import MatchIndex
from palio.model.errors import FilterTooLarge, NotAllowed
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.model.plain import has_part
from palio.protocol.envelope import Envelope

SEPARATOR = "/"
# Filters of an owner that are remembered as narrowed: more than are being subscribed to at a time.
MAX_NARROWED = 64
# How attributes begin that brokers alone give, and that only who may inspect sees.
INSPECTED = "palio.overlay."
# What the encoded attributes of a notification have in them if one of these is among them.
_INSPECTED_BYTES = b"o.ov"
_EVERYTHING = Filter()
_NOTHING = Filter(())


class SetScope(msgspec.Struct, frozen=True):
    """From the shell: what an owner may see and publish from now on; None is nothing.

    Who `inspects` also sees what brokers say of their links, as far as `subscribe` goes.
    """

    owner: str
    subscribe: Filter | None
    publish: Filter | None
    inspects: bool = False


class _Scope:
    """What one owner may see and publish, and an index that checks the former for many at a time."""

    __slots__ = ("index", "inspects", "narrowed", "publish", "subscribe")

    def __init__(self, subscribe: Filter, publish: Filter, *, inspects: bool = False) -> None:
        self.subscribe = subscribe
        self.publish = publish
        self.inspects = inspects
        # What of a filter it may see; asked for before a subscription is taken, and again when it is.
        self.narrowed = lru_cache(MAX_NARROWED)(lambda filter: _travelling(filter.intersect(subscribe)))
        self.index: MatchIndex | None = None
        if subscribe.conjunctions and subscribe != _EVERYTHING:
            self.index = MatchIndex()
            self.index.add(0, subscribe)

    @property
    def sees_all(self) -> bool:
        return self.index is None and bool(self.subscribe.conjunctions)


_NO_SCOPE = _Scope(_NOTHING, _NOTHING)
_ALL = _Scope(_EVERYTHING, _EVERYTHING, inspects=True)


def tells_of_links(notification: Notification) -> bool:
    """Whether it is, or looks like, what brokers say of their links."""
    return any(name.startswith(INSPECTED) for name in notification.attributes)


def may_tell_of_links(notifications: Sequence[Notification]) -> bool:
    """Whether one of them may be: quick, as next to none is."""
    return has_part(notifications, _INSPECTED_BYTES)


def owner_of(name: str) -> str:
    """Whose session or durable subscription it is, where they are called `owner/name`; "" if it is nobody's."""
    owner, separator, _ = name.partition(SEPARATOR)
    return owner if separator else ""


class Scopes:
    """All scopes of a router. Where it is not `on`, everybody may see everything."""

    def __init__(self, *, on: bool) -> None:
        self.on = on
        self._scopes: dict[str, _Scope] = {}
        self._loose: set[str] = set()  # owners of subscriptions that select more than they may see
        self.withheld: Counter[str] = Counter()  # by what it was: what would have been seen otherwise

    def set(self, message: SetScope) -> bool:
        """Sets what an owner may see and publish. Returns whether this changes anything."""
        new = _Scope(message.subscribe or _NOTHING, message.publish or _NOTHING, inspects=message.inspects)
        old = self._scopes.get(message.owner, _NO_SCOPE)
        if (new.subscribe, new.publish) == (old.subscribe, old.publish):
            if old is not _NO_SCOPE:
                old.inspects = message.inspects
            return False
        self._scopes[message.owner] = new
        return True

    def _of(self, name: str) -> _Scope:
        return self._scopes.get(owner_of(name), _NO_SCOPE) if self.on else _ALL

    # What is asked for

    def narrow(self, name: str, filter: Filter) -> Filter:
        """What of a filter is told to the network. It may be too much, if the exact answer is too large."""
        scope = self._of(name)
        if scope.sees_all:
            return filter
        try:
            return scope.narrowed(filter)
        except FilterTooLarge:
            self._loose.add(owner_of(name))
            return filter

    def is_exact(self, name: str) -> bool:
        """Whether all that the owner of a name has subscribed to was narrowed to what it may see."""
        return owner_of(name) not in self._loose

    def exactly(self, name: str, filter: Filter, what: str) -> Filter:
        """What of a filter its owner may see, not more. Raises `NotAllowed`, or `FilterTooLarge`."""
        scope = self._of(name)
        if scope.sees_all:
            return filter
        narrow = scope.narrowed(filter)
        if not narrow.conjunctions:
            raise not_seen(name, what)
        return narrow

    def wanted(self, name: str, filter: Filter) -> Filter:
        """What of another's filter the owner of a name may publish; all of it if that is too large to say."""
        publish = self._of(name).publish
        try:
            return filter if publish == _EVERYTHING else filter.intersect(publish)
        except FilterTooLarge:
            return filter

    # What leaves

    def sees_all(self, name: str) -> bool:
        """Whether nothing is kept from the owner of a name."""
        return self._of(name).sees_all

    def sees(self, name: str, notification: Notification, what: str) -> bool:
        """Whether the owner of a name may see this now; if not, that is counted."""
        scope = self._of(name)
        inspected = not scope.inspects and may_tell_of_links((notification,)) and tells_of_links(notification)
        if not inspected and (scope.sees_all or scope.subscribe.matches(notification)):
            return True
        self.withheld[what] += 1
        return False

    def visible(self, name: str, envelopes: Sequence[Envelope], what: str) -> list[bool] | None:
        """For each, whether the owner of a name may see it now; None if it may see them all."""
        scope = self._of(name)
        if not envelopes or (scope.sees_all and scope.inspects):
            return None
        notifications = [envelope.notification for envelope in envelopes]
        inspected = not scope.inspects and may_tell_of_links(notifications)
        if scope.sees_all:
            if not inspected:
                return None
            found = [True] * len(envelopes)
        elif scope.index is None:
            found = [False] * len(envelopes)
        else:
            matched = scope.index.match_encoded([one.body.attributes for one in notifications])
            found = [bool(one) for one in matched]
        if inspected:
            told = map(tells_of_links, notifications)
            found = [seen and not links for seen, links in zip(found, told, strict=True)]
        if all(found):
            return None
        self.withheld[what] += found.count(False)
        return found

    def shown(self, name: str, envelopes: tuple[Envelope, ...], what: str) -> tuple[Envelope, ...]:
        """Those that the owner of a name may see now."""
        visible = self.visible(name, envelopes, what)
        if visible is None:
            return envelopes
        return tuple([envelope for envelope, seen in zip(envelopes, visible, strict=True) if seen])


def _travelling(filter: Filter) -> Filter:
    """The filter, which can be sent to others. Raises `FilterTooLarge`."""
    _ = filter.form
    return filter


def not_seen(name: str, what: str) -> NotAllowed:
    """The error for who asks for nothing that it may see."""
    return NotAllowed(owner_of(name), what, "nothing that it may see satisfies the filter.")
