"""`RequestGuard`: the door between clients and the router.

What they ask passes here, and what they are answered.

On the way in, a request is held to the limits and to what its principal may publish and do. Nothing behind
this door applies a limit again: a filter that passes can be stored, sent and read by every broker, and so can
what of it the principal may see. A request leaves with the names that the whole network uses, in which every
session and durable subscription has its owner's name before its own, so that nobody can name what is
another's. On the way out the names are the client's own again. What clients may *see* is decided by the
router, for each event and at the last moment (`palio.routing.scopes`). Both ways only what is listed passes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from palio.broker.access.principal import Principal, failed
from palio.broker.access.rights import Allowance
from palio.broker.documents.withdrawing import is_withdrawal
from palio.broker.limits import BrokersOnly, Rates, ReservedAttribute, TooManyAttributes, require_name
from palio.broker.settings import Limits, Settings
from palio.broker.unlisted import UnlistedMessage
from palio.documents.reserved import RESERVED, RESERVED_BYTES
from palio.matching import MatchIndex
from palio.model.advertisement import Advertisement
from palio.model.effort import pause
from palio.model.errors import FilterTooLarge, NotAllowed
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.model.plain import has_part
from palio.model.values import MAX_ATTRIBUTES
from palio.protocol import frames, inquiries, requests
from palio.protocol.durable import control, journals
from palio.protocol.durable import subscriptions as durable
from palio.protocol.vocabulary import FROM_CLIENTS
from palio.routing.considering import AT_ONCE
from palio.routing.scopes import INSPECTED, may_tell_of_links, owner_of, tells_of_links

_EVERYTHING = Filter()
_Publishing = TypeVar("_Publishing", requests.Publish, requests.PublishDocuments)
# Requests about a durable subscription, whose refusals name it.
_ABOUT_NAMES = frozenset(kind.__name__.lower() for kind in FROM_CLIENTS if hasattr(kind, "name"))


class RequestGuard:
    """Authorization and limits of what clients of one broker may ask. `check` raises what speaks against it."""

    def __init__(self, settings: Settings, now: Callable[[], float]) -> None:
        self._limits: Limits = settings.limits
        self._refuses_wider = settings.security.when_wider == "refuse"
        self._rates = Rates(settings.limits.publish_rate, now)
        self._publishing: dict[Filter, MatchIndex] = {}
        self._checks: dict[type, Callable[[Any, Principal, str], Any]] = {
            requests.Subscribe: self._subscribing,
            **dict.fromkeys((requests.Unsubscribe, requests.Unadvertise), self._cancelling),
            **dict.fromkeys((journals.Survey, journals.Replay), self._asking),
            **dict.fromkeys((durable.Attach, durable.Change), self._asking_by_name),
            **dict.fromkeys((durable.Acknowledged, durable.Rejected, durable.Detach, durable.Finish), _named),
            **dict.fromkeys((control.Pause, control.Resume, control.Seek), _named),
            **dict.fromkeys((durable.Requeue, durable.Discard), _of_anybody),
            journals.Forget: _forgetting,
            journals.ListJournals: _listing,
            **dict.fromkeys((journals.Hold, journals.TrimJournal), _journaling),
            requests.Publish: self._publish,
            **dict.fromkeys((inquiries.Request, inquiries.Respond), self._one),
            inquiries.Trace: self._tracing,
            **dict.fromkeys((requests.Advertise, inquiries.Watch), self._advertising),
            # About what the session itself has asked for before.
            **dict.fromkeys((requests.Release, journals.GoOn), _as_it_is),
        }

    def check(self, message: Any, principal: Principal, session: str) -> Any:
        """Checks a request. Returns it as the router gets it.

        Raises `NotAllowed`, `UnlistedMessage`, and the errors of limits.
        """
        check = self._checks.get(type(message))
        if check is None:
            raise UnlistedMessage(message, "door for clients")
        return check(message, principal, session)

    def gone(self, session: str) -> None:
        """Forgets a session that has ended."""
        self._rates.forget(session)

    # Asking for events

    def _bounded(self, item: Filter | Advertisement) -> None:
        """Raises `FilterTooLarge` for what is longer than allowed, or too large to be sent and stored."""
        length = len(item.source or str(item))
        if length > self._limits.filter:
            raise FilterTooLarge(limit=self._limits.filter, got=length, what="characters")
        _ = item.form

    def _cancelling(
        self, message: requests.Unsubscribe | requests.Unadvertise, principal: Principal, session: str
    ) -> Any:
        self._bounded(message.filter if type(message) is requests.Unsubscribe else message.advertisement)  # type: ignore[union-attr]
        return message

    def _subscribing(self, message: requests.Subscribe, principal: Principal, session: str) -> Any:
        require_name("a subscription", message.handle)
        return self._asking(message, principal, session)

    def _asking(self, message: Any, principal: Principal, session: str) -> Any:
        filter: Filter | None = message.filter
        if filter is not None:
            self._bounded(filter)
        allowed = principal.rights.subscribe
        if allowed is None:
            raise NotAllowed(principal.name, "subscribe", "it has no right to see anything.")
        if filter is None:  # the one that a durable subscription has; what leaves is looked at in any case
            return message
        if self._refuses_wider and not allowed.covers(filter):
            beyond = allowed.counterexample(filter)
            example = f", such as {beyond.to_json()}" if beyond is not None else ""
            reason = f"the filter asks for more than it may see{example}."
            raise NotAllowed(principal.name, "subscribe to all of this", reason)
        if allowed != _EVERYTHING:
            self._narrowed(filter, allowed, principal.name)
        return message

    def _narrowed(self, filter: Filter, allowed: Filter, name: str) -> None:
        """The network is told of what is asked for and allowed: that must not be too large, either."""
        try:
            _ = filter.intersect(allowed).form
        except FilterTooLarge as problem:
            what = f"{problem.what} together with all that {name} may see"
            raise FilterTooLarge(limit=problem.limit, got=problem.got, what=what) from None

    def _asking_by_name(self, message: Any, principal: Principal, session: str) -> Any:
        for origin in getattr(message, "after", None) or ():
            require_name("a broker", origin)
        return _named(self._asking(message, principal, session), principal, session)

    # Giving events

    def _publish(self, message: requests.Publish, principal: Principal, session: str) -> requests.Publish:
        self._require(message.notifications, principal)
        self._rates.require(principal.name or session, len(message.notifications))
        return _as_published_by(message, principal)

    def documents(
        self, message: requests.PublishDocuments, principal: Principal, session: str, *, counted: bool = True
    ) -> requests.PublishDocuments:
        """Checks documents before they are read; `read` does it afterwards. Raises what `check` does.

        What was counted before, as it was handed on since, is not `counted` again.
        """
        if principal.rights.publish is None:
            raise NotAllowed(principal.name, "publish", "it has no right to publish anything.")
        require_unreserved([one for one in message.notifications if not is_withdrawal(one)])
        if counted:
            self._rates.require(principal.name or session, len(message.notifications))
        return _as_published_by(message, principal)

    def read(self, notifications: tuple[Notification, ...], principal: Principal) -> None:
        """Checks what was read of documents. Raises `NotAllowed` and `TooManyAttributes`."""
        self._allow(notifications, principal)

    def _one(self, message: inquiries.Request | inquiries.Respond, principal: Principal, session: str) -> Any:
        if message.notification is not None:
            self._require((message.notification,), principal)
            self._rates.require(principal.name or session, 1)
        elif isinstance(message, inquiries.Respond) and message.problem is not None:
            if principal.rights.publish != _EVERYTHING:  # a text is nothing that a filter allows
                message = msgspec.structs.replace(message, problem=inquiries.UNTOLD)
        return message

    def _require(self, notifications: tuple[Notification, ...], principal: Principal) -> None:
        """Raises `NotAllowed` or `ReservedAttribute` for the first that may not be published,
        `InvalidNotification` if one is none.
        """
        require_unreserved(notifications)
        self._allow(notifications, principal)

    def _allow(self, notifications: tuple[Notification, ...], principal: Principal) -> None:
        allowed = principal.rights.publish
        if allowed is None:
            raise NotAllowed(principal.name, "publish", "it has no right to publish anything.")
        if allowed != _EVERYTHING:
            index = self._publishing.get(allowed)
            if index is None:
                if len(self._publishing) >= 1_024:  # rights that were; those that are come again
                    self._publishing.clear()
                index = self._publishing[allowed] = MatchIndex()
                index.add(0, allowed)
            for at in range(0, len(notifications), AT_ONCE):
                some = notifications[at : at + AT_ONCE]
                found = index.match_encoded([one.body.attributes for one in some])
                if not all(found):
                    position = at + found.index([])
                    what = "publish this" if not position else f"publish notification {position} of the request"
                    reason = f"{failed(allowed.explain(notifications[position]))}."
                    raise NotAllowed(principal.name, what, reason)
                if len(some) < len(notifications):
                    pause()
        if self._limits.attributes < MAX_ATTRIBUTES:
            for notification in notifications:
                if (got := len(notification.attributes)) > self._limits.attributes:
                    raise TooManyAttributes(limit=self._limits.attributes, got=got)

    def _advertising(
        self, message: requests.Advertise | inquiries.Watch, principal: Principal, session: str
    ) -> Any:
        advertisement: Advertisement = message.advertisement
        require_name("an advertisement", message.handle)
        self._bounded(advertisement)
        allowed = principal.rights.publish
        if allowed is None or not advertisement.overlaps(allowed):
            raise NotAllowed(principal.name, "advertise this", "it may publish nothing of it.")
        return message

    # Looking

    def _tracing(self, message: inquiries.Trace, principal: Principal, session: str) -> inquiries.Trace:
        rights, notification = principal.rights, message.notification
        for allowed in (rights.publish, rights.subscribe):
            if allowed is not None and allowed.matches(notification):
                return message
        principal.require(Allowance.TRACE, "trace what it may neither publish nor see")
        return message


def _as_published_by(message: _Publishing, principal: Principal) -> _Publishing:
    if message.publisher and principal.name:
        return msgspec.structs.replace(message, publisher=principal.own(message.publisher))
    return message


def require_unreserved(notifications: Sequence[Notification]) -> None:
    """Raises `ReservedAttribute` for what says of itself what only reading a document says, and `BrokersOnly`
    for what says of links what only brokers say.
    """
    if may_tell_of_links(notifications):
        for notification in notifications:
            if tells_of_links(notification):
                raise BrokersOnly(min(name for name in notification.attributes if name.startswith(INSPECTED)))
    if not has_part(notifications, RESERVED_BYTES):
        return  # next to nobody publishes such: what is not decoded otherwise is not decoded here
    for notification in notifications:
        for name in sorted(RESERVED & notification.attributes.keys()):
            raise ReservedAttribute(name)


def answered(answer: Any, principal: Principal) -> Any:
    """The answer as the client gets it. Raises `UnlistedMessage`."""
    change = _ANSWERS.get(type(answer))
    if change is None:
        raise UnlistedMessage(answer, "door for clients")
    return change(answer, principal)


def require_deliverable(message: Any) -> None:
    """Raises `EventTooLarge` if something that a client gives could not be delivered to anybody.

    What comes in a smaller frame than an event may have need not be asked.
    """
    for notification in (*getattr(message, "notifications", ()), getattr(message, "notification", None)):
        if notification is not None:
            frames.require_deliverable(notification.body)


def _as_it_is(message: Any, principal: Principal, session: str = "") -> Any:
    return message


def _named(message: Any, principal: Principal, session: str) -> Any:
    """Checks a request about a durable subscription of one's own."""
    require_name("a durable subscription", message.name)
    if not principal.name:
        return message
    return msgspec.structs.replace(message, name=principal.own(message.name))


def _of_anybody(message: durable.Requeue | durable.Discard, principal: Principal, session: str) -> Any:
    """Checks a request about dead letters: one's own, or with the right to it those of `owner/name`."""
    if principal.may(Allowance.DLQ) and "/" in message.name:
        return message
    return _named(message, principal, session)


def _forgetting(message: journals.Forget, principal: Principal, session: str) -> journals.Forget:
    principal.require(Allowance.FORGET, "let a broker be forgotten")
    return message


def _listing(message: journals.ListJournals, principal: Principal, session: str) -> journals.ListJournals:
    """How much was published is told to those who may see some of it."""
    if principal.rights.subscribe is None:
        principal.require(Allowance.JOURNAL, "ask how far the journals are")
    return message


def _journaling(message: journals.Hold | journals.TrimJournal, principal: Principal, session: str) -> Any:
    principal.require(Allowance.JOURNAL, "say how long a journal is kept")
    return message


def _redacted(hop: inquiries.Hop, owner: str) -> inquiries.Hop | None:
    """Of a way, only where the owner itself would get something; None if that is nowhere."""
    recipients = tuple([one for one in hop.recipients if owner_of(one.name) == owner])
    onward = tuple([kept for one in hop.onward if (kept := _redacted(one, owner)) is not None])
    return inquiries.Hop(hop.broker, recipients, onward) if recipients or onward else None


# The way out


def _with_own_name(answer: Any, principal: Principal) -> Any:
    if not principal.name:
        return answer
    return msgspec.structs.replace(answer, name=principal.called(answer.name))


def _ended(answer: requests.Ended, principal: Principal) -> requests.Ended:
    return requests.Ended(tuple([principal.called(handle) for handle in answer.handles]), number=answer.number)


def _refused(answer: requests.Refused, principal: Principal) -> requests.Refused:
    if answer.kind not in _ABOUT_NAMES:
        return answer
    name = answer.subject.partition(" ")[2]
    return msgspec.structs.replace(answer, subject=f"{answer.kind} {principal.called(name)}")


def _traced(answer: inquiries.Traced, principal: Principal) -> inquiries.Traced:
    if principal.may(Allowance.TRACE):
        return answer
    return inquiries.Traced(
        answer.number, _redacted(answer.route, principal.name) or inquiries.Hop(answer.route.broker)
    )


_ANSWERS: dict[type, Callable[[Any, Principal], Any]] = {
    **dict.fromkeys((requests.Accepted, requests.Ready, requests.Published), _as_it_is),
    **dict.fromkeys((inquiries.Requested, inquiries.Responded, inquiries.Wanted), _as_it_is),
    **dict.fromkeys((journals.Forgot, journals.Surveyed, journals.Replayed), _as_it_is),
    **dict.fromkeys((journals.JournalsListed, journals.Held, journals.JournalTrimmed), _as_it_is),
    # They name a durable subscription.
    **dict.fromkeys((durable.Attached, durable.DurableReady, durable.Done, durable.Changed), _with_own_name),
    **dict.fromkeys((durable.Taken, durable.GapNoticed, durable.Requeued, durable.Discarded), _with_own_name),
    **dict.fromkeys((control.Paused, control.Sought), _with_own_name),
    requests.Ended: _ended,
    requests.Refused: _refused,
    inquiries.Traced: _traced,
}
