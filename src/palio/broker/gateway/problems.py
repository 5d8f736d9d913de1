"""What goes wrong, as problem details (RFC 9457): the sentence, the type and the fields of the native error.

`STATUSES` is the one table from errors to statuses. An error that the broker refused with, over `palio/2`, has
the same fields as one that was found here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from palio.model.errors import PalioError, cut

if TYPE_CHECKING:
    from starlette.responses import Response

MEDIA_TYPE = "application/problem+json"
TYPE = "urn:palio:error:"
_RESERVED = frozenset(("type", "title", "status", "detail", "instance", "error"))
_LONGEST_FIELD = 4_096

_ERRORS_OF = {
    401: ("NotAuthenticated", "TokenExpired"),
    403: ("NotAllowed", "NotAdvertised", "ReservedAttribute", "StrangeOrigin", "StrangePage", "StrangeHost"),
    404: (
        "NotFound",
        "UnknownRequest",
        "UnknownSubscription",
        "NoSuchSubscription",
        "NotHome",
        "UnknownFamily",
        "NoSuchDocument",
    ),
    405: ("WrongMethod",),
    408: ("BodyTooSlow",),
    409: (
        "NotTaker",
        "FilterDiffers",
        "SubscriptionExists",
        "FamilyExists",
        "FamilyConflict",
        "FamilyIncompatible",
    ),
    410: ("DocumentWithdrawn",),
    413: ("BodyTooLarge", "EventTooLarge", "FrameTooLarge", "DocumentTooLarge"),
    414: ("RequestLineTooLong",),
    415: ("EncodedBody", "WrongMediaType"),
    426: ("UpgradeRequired",),
    429: (
        "TooManyInvocations",
        "GatewayFull",
        "TooManySubscriptions",
        "TooMuchSubscribed",
        "TooFast",
        "Throttled",
        "StageQueueFull",
    ),
    431: ("HeadersTooLarge",),
    500: ("BrokerMistake",),
    501: ("NoJournal", "KeepsNothing", "MissingDependency"),
    503: (
        "TooManyConnections",
        "NotNow",
        "NotStored",
        "SpoolUnusable",
        "HomeUnreachable",
        "HistoryUnavailable",
        "VisitEnded",
    ),
    504: ("NoAnswer", "NotHeardYet"),
}
# By the name of the error. What is not here is the fault of the request: 400.
STATUSES = {name: status for status, names in _ERRORS_OF.items() for name in names}


class Problem(msgspec.Struct):
    """A problem (RFC 9457): beside these members it has the fields of the error."""

    type: Annotated[str, msgspec.Meta(examples=[f"{TYPE}InvalidNotification"])]
    title: str
    status: int
    detail: Annotated[str, msgspec.Meta(description="A finished sentence.")]
    error: Annotated[str, msgspec.Meta(description="The name of the error, as in the client library.")]


class RefusedByBroker(PalioError):
    """What the broker did not carry out; `error` names what is wrong, `reason` tells it."""

    subject: str
    error: str
    reason: str

    def __init__(self, subject: str, error: str, reason: str, more: Mapping[str, Any] | None = None) -> None:
        super().__init__(
            reason, **({"subject": subject, "reason": reason} | dict(more or {}) | {"error": error})
        )


class NotFound(PalioError):
    """A path that leads nowhere."""

    path: str = cut(200)
    sentence = "There is nothing at {path!r}; /docs lists what there is."


class WrongMethod(PalioError):
    """A method that a path does not know."""

    method: str = cut(20)
    allowed: str
    sentence = "{method} cannot be used here; there is {allowed}."


def error_name(problem: PalioError) -> str:
    return problem.error if isinstance(problem, RefusedByBroker) else type(problem).__name__


def status_of(problem: PalioError) -> int:
    return STATUSES.get(error_name(problem), 400)


def details(problem: PalioError) -> dict[str, Any]:
    """The problem document of an error."""
    name = error_name(problem)
    document: dict[str, Any] = {
        "type": TYPE + name,
        "title": _words(name),
        "status": status_of(problem),
        "detail": str(problem),
        "error": name,
    }
    for field, value in problem.fields.items():
        if value is not None and field not in _RESERVED:
            document[field] = _plain(value)
    return document


def problem_response(problem: PalioError, headers: Mapping[str, str] | None = None) -> Response:
    """An error as an answer."""
    from starlette.responses import Response  # noqa: PLC0415 (a broker without HTTP has routes, but no web server)

    document = details(problem)
    more = dict(headers or {})
    if document["status"] == 401:
        more["WWW-Authenticate"] = 'Bearer realm="palio"'
    if isinstance(problem, WrongMethod):
        more["Allow"] = problem.allowed
    if document["status"] == 429 and "seconds" in document:
        more["Retry-After"] = str(math.ceil(document["seconds"]))
    body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(errors="replace") + b"\n"
    return Response(body, document["status"], more, MEDIA_TYPE)


def _words(name: str) -> str:
    words = re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower()
    return words[:1].upper() + words[1:]


def _plain(value: Any) -> Any:
    """A field as JSON: what is long is cut, what is strange becomes its text."""
    match value:
        case str():
            return value if len(value) <= _LONGEST_FIELD else value[:_LONGEST_FIELD] + "…"
        case bool() | int() | float():
            return value
        case list() | tuple():
            return [_plain(one) for one in value[:100]]
        case _:
            return str(value)[:_LONGEST_FIELD]
