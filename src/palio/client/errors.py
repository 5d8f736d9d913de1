"""What can go wrong for a client, and how a broker's refusal becomes an error again."""

from __future__ import annotations

from dataclasses import InitVar

from palio.model import errors as model_errors
from palio.model.errors import PalioError
from palio.protocol.durable.wishes import HomeUnreachable, NotHome, NotTaker, WrongAttachment
from palio.protocol.requests import Refused


class WrongAddress(PalioError):
    """An address that names no broker."""

    address: str
    reason: InitVar[str]
    sentence = (
        "{address!r} is no address of a broker: {reason} Write palio://host:port or ws://host:port, and "
        "further brokers after commas."
    )


class NotConnected(PalioError):
    """No broker could be reached; `problems` says why, by address."""

    problems: dict[str, str]

    def sentence(self) -> str:
        told = "; ".join(f"{address}: {problem}" for address, problem in self.problems.items())
        return f"No broker could be reached ({told}). Is one running there? `palio up` starts one."


class WrongPort(NotConnected):
    """A port at which something else is spoken than the address says; `advice` is what to write instead."""

    address: str
    advice: str

    def __init__(self, address: str, spoken: str, advice: str) -> None:
        PalioError.__init__(
            self, f"{address} {spoken}. {advice}", problems={address: spoken}, address=address, advice=advice
        )


class UntrustedCertificate(NotConnected):
    """A broker whose certificate is not for its host, has expired, or is signed by nobody who is trusted."""

    address: str
    reason: str

    def __init__(self, address: str, reason: str) -> None:
        reason = reason.rstrip(".")
        PalioError.__init__(
            self,
            f"The certificate of {address} cannot be trusted: {reason}. Connect by the name that it is for; if "
            "an authority of your own has signed it, name its file (`tls=` in a program, `--authority` for "
            "`palio`).",
            problems={address: f"its certificate cannot be trusted: {reason}"},
            address=address,
            reason=reason,
        )


class ConnectionLost(PalioError):
    """The connection ended while something that cannot simply be done again was under way."""

    request: str
    reason: str
    sentence = "The connection was lost during {request!r}; whether it was carried out is not known: {reason}"


class ClientClosed(PalioError):
    """The client was closed, by its user or because it could not go on."""

    reason: str
    sentence = "This client is closed: {reason} Connect a new one."


class RequestTimeout(PalioError, TimeoutError):
    """A request that was not answered in time. Whether it was carried out is not known."""

    request: str
    seconds: float
    sentence = "There was no answer to {request!r} within {seconds:g} seconds."


class NoEvent(RequestTimeout):
    """No event came in the time for which a reader wanted to wait. The subscription goes on."""

    subscription: str

    def __init__(self, subscription: str, seconds: float) -> None:
        PalioError.__init__(
            self,
            f"No event came for the subscription to {subscription} within {seconds:g} seconds; it goes on, and "
            "`next` can be called again.",
            request="next",
            seconds=seconds,
            subscription=subscription,
        )


class RequestRefused(PalioError):
    """A request that the broker did not carry out; `error` names what is wrong, `reason` tells it.

    The fields that the error has at the broker are fields here, too.
    """

    subject: str
    error: str
    reason: str
    sentence = "{reason}"


class BrokerTooOld(PalioError):
    """A request that came into the protocol after the version of the broker."""

    broker: str
    request: str
    sentence = "The broker {broker!r} does not know {request!r}; bring it up to date."


class SlowConsumer(PalioError):
    """A subscription with more events waiting than it may have, and whose policy is to end."""

    subscription: str
    limit: int
    sentence = (
        "The subscription {subscription!r} has {limit:,} events waiting, as many as it may. Read faster, allow "
        "more (limit=…), or let some be dropped (when_full=…)."
    )


class EventsLost(PalioError):
    """The broker had to drop events, because this client did not read fast enough."""

    count: int
    reason: str
    sentence = "{count:,} events for this client were dropped by the broker: {reason}"


class SubscriptionEnded(PalioError):
    """There will be no more events of this subscription."""

    subscription: str
    reason: InitVar[str]
    sentence = "The subscription {subscription!r} has ended: {reason}"


class TakenOver(SubscriptionEnded):
    """Another client has become the taker of a durable subscription."""

    def __init__(self, subscription: str) -> None:
        super().__init__(subscription, "Another client takes its events now.")


class AlreadySubscribed(PalioError):
    """This client is the taker of a durable subscription of that name already."""

    subscription: str
    sentence = "This client takes the events of {subscription!r} already; detach that one first."


class WrongSubscription(PalioError):
    """Wishes about a subscription that do not go together."""

    reason: str
    sentence = "This cannot be subscribed to: {reason}"


class TooMuchUnsent(PalioError):
    """More is waiting to be sent than a client may hold."""

    limit: int
    sentence = "More than {limit:,} bytes are waiting to be sent; `await client.flush()` from time to time."


class WrongType(PalioError):
    """A type of which no objects can be made from events."""

    into: str
    sentence = (
        "Events cannot be decoded into {into}: name a dataclass, a msgspec.Struct, a TypedDict or a model of "
        "pydantic."
    )


class UndecodableEvent(PalioError):
    """An event that is no object of the type that a subscription was to decode it into."""

    into: str
    path: str
    reason: str
    origin: str
    sequence: int
    sentence = "The event {origin}/{sequence} cannot be decoded into {into}: {path}: {reason}"


class ReplierFailed(PalioError):
    """Nobody has replied to a request, and somebody who took it could not; `problems` says why, for each."""

    problems: tuple[str, ...]

    def sentence(self) -> str:
        others = f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
        return f"Who took this request could not answer it{others}: {self.problems[0]}"


class NoRequest(PalioError):
    """A reply to an event that nobody wants to be answered."""

    def __init__(self) -> None:
        super().__init__("This event is no request, or was answered already: there is nobody to reply to.")


# Errors that a broker names and that exist here are raised as what they are; anything else as `RequestRefused`.
_KNOWN: dict[str, type[PalioError]] = {
    name: kind
    for name, kind in vars(model_errors).items()
    if isinstance(kind, type) and issubclass(kind, PalioError)
} | {kind.__name__: kind for kind in (HomeUnreachable, NotHome, NotTaker, WrongAttachment)}


def error_of(refused: Refused) -> PalioError:
    """The error that an answer tells of."""
    subject, error, reason = refused.subject, refused.error, refused.reason
    kind = _KNOWN.get(error)
    if kind is None:
        kind = RequestRefused
    problem = kind.__new__(kind)
    told = {"subject": subject, "error": error, "reason": reason}
    fields = told | refused.fields if kind is not RequestRefused else refused.fields | told
    PalioError.__init__(problem, reason, **fields)
    return problem
