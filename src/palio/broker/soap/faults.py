"""Faults: what goes wrong, as SOAP 1.1 and 1.2 tell it, with the names that WS-Notification has for it.

An error has one status, that of the gateway's table. What WS-Notification or ONVIF have a name for is told by
it, in the detail, with the sentence of the error; a client that knows neither reads the same sentence as the
reason.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import msgspec

from palio.broker.gateway.problems import error_name, status_of
from palio.broker.soap.elements import Element, make
from palio.broker.soap.names import PALIO, TER, WSNT, WSRF_BF, WSRF_R
from palio.broker.soap.termination import write_moment
from palio.model.errors import PalioError, cut


class UnknownOperation(PalioError):
    """A request for what an endpoint does not do."""

    operation: str = cut(200)
    known: tuple[str, ...]

    def sentence(self) -> str:
        return f"There is no operation {self.operation!r} here; there are {', '.join(self.known)}."


class SoapProblem(PalioError):
    """Something of WS-Notification that cannot be done; `fault` is the name that the standard has for it."""

    fault: str
    reason: str
    sentence = "{reason}"


class FaultName(msgspec.Struct, frozen=True):
    """What a standard calls an error: the element of the detail."""

    name: str
    namespace: str = WSNT


# By the name of the error, where it means one thing only.
_NAMES: Mapping[str, FaultName] = {
    "UnknownSubscription": FaultName("ResourceUnknownFault", WSRF_R),
    "NoSuchSubscription": FaultName("ResourceUnknownFault", WSRF_R),
    "SinkNotAllowed": FaultName("SubscribeCreationFailedFault"),
    "SinkNotReached": FaultName("SubscribeCreationFailedFault"),
    "SinkDeclined": FaultName("SubscribeCreationFailedFault"),
    "GatewayFull": FaultName("SubscribeCreationFailedFault"),
    "TooManySubscriptions": FaultName("SubscribeCreationFailedFault"),
}
_DENIED = frozenset({"NotAuthenticated", "TokenExpired", "NotAllowed"})
CLIENT_FAULT, SERVER_FAULT = 400, 500
_TELLING = frozenset({401, 403, 408, 413, 415, 429, 503})


def http_status(problem: PalioError) -> int:
    """The status of a fault: what says more than that the sender or the receiver is at fault stays."""
    status = status_of(problem)
    return status if status in _TELLING else CLIENT_FAULT if status < SERVER_FAULT else SERVER_FAULT


def fault_name(problem: PalioError) -> FaultName | None:
    """What the standards call an error, if they have a name for it."""
    if isinstance(problem, SoapProblem):
        return FaultName(problem.fault)
    return _NAMES.get(error_name(problem))


def is_denied(problem: PalioError) -> bool:
    """Whether somebody is not known, or may not do what was asked for."""
    return error_name(problem) in _DENIED


def fault_detail(problem: PalioError) -> Element:
    """What a fault says for programs: the fault of the standard, and our own error by its name."""
    sentence = str(problem)
    known = fault_name(problem)
    if known is None:
        return make(PALIO, "Error", sentence, name=error_name(problem))
    base = (
        make(WSRF_BF, "Timestamp", write_moment(time.time())),
        make(WSRF_BF, "ErrorCode", error_name(problem), dialect=PALIO),
        make(WSRF_BF, "Description", sentence),
    )
    return make(known.namespace, known.name, *base)


# How ONVIF says that somebody may not, as a qualified name of its namespace.
NOT_AUTHORIZED = (TER, "NotAuthorized")
