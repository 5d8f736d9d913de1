"""What the routes take and give, for OpenAPI. The tests hold the broker to it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from palio.broker.extension import Route
from palio.broker.gateway.definitions import MAX_SINK, MAX_TEXT
from palio.broker.gateway.parameters import KEY_PATTERN, LONGEST_LIFETIME, LONGEST_WAIT, SHORTEST_LIFETIME
from palio.broker.gateway.problems import MEDIA_TYPE
from palio.language import MEMBERS
from palio.model.formats import BATCH, JSON, STRUCTURED
from palio.protocol.durable.wishes import LONGEST_WAIT as LONGEST_PAUSE
from palio.protocol.durable.wishes import MAX_ATTEMPTS


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A member that may also be null, which means that it is absent."""
    return {**schema, "type": [schema["type"], "null"]}


_TEXT = {"type": "string"}
_PROBLEM = {
    "type": "object",
    "description": "A problem (RFC 9457): beside these members it has the fields of the error.",
    "required": ["type", "title", "status", "detail", "error"],
    "properties": {
        "type": {"type": "string", "example": "urn:palio:error:InvalidNotification"},
        "title": _TEXT,
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "A finished sentence."},
        "error": {"type": "string", "description": "The name of the error, as in the client library."},
    },
}
_ATTRIBUTES = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": {"type": "string", "minLength": 1},
}
_FILTERS = {
    "type": "array",
    "description": f"All must hold. Each has one member, its dialect: {', '.join(MEMBERS)}.",
    "items": {
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "properties": {
            "exact": _ATTRIBUTES,
            "prefix": _ATTRIBUTES,
            "suffix": _ATTRIBUTES,
            "all": {"type": "array", "minItems": 1, "items": {"type": "object"}},
            "any": {"type": "array", "minItems": 1, "items": {"type": "object"}},
            "not": {"type": "object", "minProperties": 1, "maxProperties": 1},
            "palio": {"type": "string", "example": "price > 100"},
        },
        "additionalProperties": False,
    },
}
_WISH: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "id": {"type": "string", "pattern": "^[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,63}$"},
        "source": _or_null({"type": "string", "minLength": 1, "maxLength": MAX_TEXT}),
        "types": _or_null(
            {
                "type": "array",
                "minItems": 1,
                "maxItems": 256,
                "items": {"type": "string", "minLength": 1, "maxLength": MAX_TEXT},
            }
        ),
        "filters": _or_null(_FILTERS),
        "sink": _or_null(
            {
                "type": "string",
                "format": "uri",
                "minLength": 1,
                "maxLength": MAX_SINK,
                "description": "A webhook; without one the subscription is read from /events?durable=ID.",
            }
        ),
        "protocol": {"type": "string", "enum": ["HTTP"]},
        "protocolsettings": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "method": {"type": "string", "enum": ["POST"]},
                "headers": {"type": "object", "maxProperties": 32, "additionalProperties": {"type": "string"}},
            },
        },
        "sinkcredential": _or_null(
            {
                "type": "object",
                "description": "Never shown again.",
                "additionalProperties": False,
                "required": ["accesstoken"],
                "properties": {
                    "credentialtype": {"type": "string", "enum": ["ACCESSTOKEN"]},
                    "accesstokentype": {"type": "string", "enum": ["Bearer"]},
                    "accesstoken": {"type": "string", "pattern": "^[!-~]{1,2048}$"},
                },
            }
        ),
        "config": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "contentmode": {"type": "string", "enum": ["binary", "structured"]},
                "in_flight": _or_null({"type": "integer", "minimum": 1, "maximum": 256}),
                "since": {
                    "oneOf": [
                        {"type": "string", "enum": ["now", "all"]},
                        {"type": "string", "format": "date-time"},
                        {"type": "number", "minimum": 0, "exclusiveMaximum": 1e11},
                    ]
                },
                "attempts": _or_null({"type": "integer", "minimum": 1, "maximum": MAX_ATTEMPTS}),
                "first_pause": _or_null({"type": "number", "minimum": 0, "maximum": LONGEST_PAUSE}),
                "longest_pause": _or_null({"type": "number", "minimum": 0, "maximum": LONGEST_PAUSE}),
            },
        },
    },
}
_SHOWN = {
    "type": "object",
    "required": ["id", "protocol", "filter"],
    "properties": {
        **{name: part for name, part in _WISH["properties"].items() if name != "sinkcredential"},
        "filter": {"type": "string", "description": "All of it, in the language of this network."},
        "id": {"type": "string", "minLength": 1},  # one that was made in another way may have any name
        "paused": {"type": "boolean"},
        "status": {
            "type": "object",
            "required": ["state", "pushed", "failed"],
            "properties": {
                "state": _TEXT,
                "pushed": {"type": "integer"},
                "failed": {"type": "object", "additionalProperties": {"type": "integer"}},
                "problem": _or_null(_TEXT),
            },
        },
    },
}
_CONFIRMED = {
    "type": "object",
    "required": ["origin", "sequences", "journaled"],
    "properties": {
        "origin": {"type": "string", "description": "The broker that took the events."},
        "sequences": {"type": "array", "items": {"type": "integer"}, "description": "Their numbers there."},
        "journaled": {"type": "boolean", "description": "Whether they are on disk."},
    },
}
_EVENT = {
    "type": "object",
    "required": ["specversion", "id", "source", "type"],
    "properties": {
        "specversion": {"type": "string", "enum": ["1.0"]},
        "id": {"type": "string", "minLength": 1},
        "source": {"type": "string", "minLength": 1},
        "type": {"type": "string", "minLength": 1},
        "time": _or_null({"type": "string", "format": "date-time"}),
        "data": {},
    },
}
_SENT = {
    "type": "object",
    "description": "Each event of the stream.",
    "required": ["data"],
    "properties": {
        "event": {
            "type": "string",
            "enum": ["message", "lost", "end"],
            "description": "Where it is no notification: that some were lost, or why the stream ends.",
        },
        "id": {"type": "string", "description": "Where to go on (Last-Event-ID)."},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}

_SENTENCES = {
    400: "What is wrong with the request.",
    401: "Nobody is known by this token or certificate, or none was shown.",
    403: "This is not allowed.",
    404: "There is no such subscription.",
    408: "The request did not come in time.",
    409: "There is another one already.",
    413: "It is too large.",
    415: "It is of a kind, or encoded in a way, that is not known here.",
    429: "There are too many, or they come too fast.",
    501: "This broker keeps no journal.",
    503: "Not now; try again.",
    504: "There was no answer in time.",
}


def _problems(*statuses: int) -> dict[int, dict[str, Any]]:
    answer = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": _SENTENCES[status], "content": answer} for status in statuses}


def _answer(description: str, schema: Any, media_type: str = JSON) -> dict[str, Any]:
    return {"description": description, "content": {media_type: {"schema": schema}}}


def _query(name: str, description: str, schema: Any) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "description": description, "schema": schema}


def _header(name: str, description: str, schema: Any) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": False, "description": description, "schema": schema}


def _route(summary: str, statuses: tuple[int, ...], answers: dict[int, Any], **extra: Any) -> dict[str, Any]:
    security: list[dict[str, list[str]]] = [{}, {"token": []}, {"certificate": []}]
    return {
        "summary": summary,
        "description": extra.pop("description", summary),
        "responses": {str(status): one for status, one in (answers | _problems(*statuses)).items()},
        "security": security,
        **extra,
    }


def _body(**content: Any) -> dict[str, Any]:
    return {"required": True, "content": content["content"]}


_COMMON = (401, 403, 429, 503, 504)
_ID = {
    "name": "id",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "minLength": 1, "pattern": "^[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,63}$"},
}
_ONCE = {"type": "string", "pattern": KEY_PATTERN}
_KEY = _header("Idempotency-Key", "What is sent again with the same key is done once.", _ONCE)
_POSITION = {"type": "string", "pattern": "^$|^[^,]*:[0-9]{1,18}(,[^,]*:[0-9]{1,18})*$"}

_SINCE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["since"],
    "properties": {
        "since": {
            "oneOf": [
                {"type": "string", "enum": ["now", "all"]},
                {"type": "string", "format": "date-time"},
                {"type": "number", "minimum": 0, "exclusiveMaximum": 1e11},
            ]
        },
        "dry": {"type": "boolean"},
    },
}
_AFTER = {
    "type": "object",
    "additionalProperties": False,
    "required": ["position"],
    "properties": {
        "position": {
            "type": "string",
            "pattern": "^[^,]*:[0-9]{1,18}(,[^,]*:[0-9]{1,18})*$",
            "description": "As the id of an event in a stream.",
        },
        "dry": {"type": "boolean"},
    },
}

PUBLISH = _route(
    "Publish events",
    (400, 408, 413, 415, *_COMMON),
    {200: _answer("The broker has taken them; with a journal, they are on disk.", _CONFIRMED)},
    description=(
        "One event or several: plain JSON (an object, or an array of objects), JSON lines, or CloudEvents in "
        "binary (ce-… headers), structured or batch mode. All are published, in their order, or none. The "
        "answer is the confirmation. A CloudEvent is known by source and id, other events by Idempotency-Key "
        "or id: what was published before is answered with its first sequence."
    ),
    parameters=[
        _KEY,
        _query("id", "As Idempotency-Key.", _ONCE),
        _query("priority", "Of plain JSON; 9 first.", {"type": "integer", "minimum": 0, "maximum": 9}),
        _query(
            "lifetime",
            "Of plain JSON, in seconds.",
            {"type": "number", "minimum": SHORTEST_LIFETIME, "maximum": LONGEST_LIFETIME},
        ),
    ],
    requestBody=_body(
        content={
            JSON: {
                "schema": {
                    "oneOf": [
                        {"type": "object", "example": {"symbol": "ACME", "price": 101.5}},
                        {"type": "array", "items": {"type": "object"}},
                    ]
                }
            },
            STRUCTURED.media_types[0]: {"schema": _EVENT},
            BATCH.media_types[0]: {"schema": {"type": "array", "items": _EVENT}},
        }
    ),
)
STREAM = _route(
    "Read events as they come",
    (400, 409, 501, *_COMMON),
    {200: _answer("Server-sent events, without end.", _SENT, "text/event-stream")},
    description=(
        "A subscription for whoever can read a stream: curl -N 'http://…/events?filter=price>100'. Each event "
        "has an id; whoever comes back with it (Last-Event-ID) goes on there. With durable, that acknowledges."
    ),
    parameters=[
        _query(
            "filter",
            "What is wanted; without it everything, or what a durable subscription selects that is there.",
            {"type": "string", "example": "price > 100"},
        ),
        _query(
            "durable",
            "The name of a durable subscription.",
            {"type": "string", "minLength": 1, "maxLength": 255},
        ),
        _query(
            "change",
            "Whether a durable subscription that is there gets this filter; else another one is refused.",
            {"type": "boolean", "default": False},
        ),
        _query("since", "Begin in the past: all, now, a date, a time, 7d, or @ and seconds since 1970.", _TEXT),
        _query(
            "format",
            "As published, or all as CloudEvents.",
            {"type": "string", "enum": ["json", "cloudevents"]},
        ),
        _query("last", "As Last-Event-ID, for those who cannot send headers.", _POSITION),
        _query(
            "wait",
            "End when nothing has come for so many seconds; without it the stream goes on.",
            {"type": "number", "minimum": 0, "maximum": LONGEST_WAIT},
        ),
        _header("Last-Event-ID", "The id of the last event that was received.", _POSITION),
    ],
)
CREATE = _route(
    "Make a subscription",
    (400, 408, 409, 413, 415, 501, *_COMMON),
    {
        201: {
            **_answer("It is made, and on disk.", _SHOWN),
            "headers": {"Location": {"schema": _TEXT, "description": "Where it is."}},
        },
        200: _answer("The same was made before.", _SHOWN),
    },
    description="A durable subscription in the shape of the CloudEvents Subscriptions API.",
    parameters=[_KEY],
    requestBody=_body(content={JSON: {"schema": _WISH}}),
)
LIST = _route(
    "List one's subscriptions",
    _COMMON,
    {200: _answer("All that the caller has made.", {"type": "array", "items": _SHOWN})},
)
GET = _route(
    "Look at a subscription",
    (404, *_COMMON),
    {200: _answer("It, and how it is doing.", _SHOWN)},
    parameters=[_ID],
)
UPDATE = _route(
    "Change a subscription",
    (400, 404, 408, 413, 415, 501, *_COMMON),
    {200: _answer("It is changed.", _SHOWN)},
    description="Replaces what is wanted and where it goes; what waits to be delivered stays.",
    parameters=[_ID],
    requestBody=_body(content={JSON: {"schema": _WISH}}),
)
DELETE = _route(
    "End a subscription", (404, 501, *_COMMON), {204: {"description": "It is gone."}}, parameters=[_ID]
)
_HOME: dict[str, Any] = {
    "type": "object",
    "required": ["broker", "protocol", "links"],
    "properties": {
        "broker": _TEXT,
        "version": {"type": "string", "description": "Only where nobody has to say who they are."},
        "protocol": {"type": "string", "example": "palio/2"},
        "links": {"type": "object", "additionalProperties": _TEXT},
    },
}
HOME = _route(
    "What this is, and where everything is",
    (),
    {
        200: {
            "description": "A page for who accepts `text/html`, otherwise the same for programs.",
            "content": {JSON: {"schema": _HOME}, "text/html": {"schema": _TEXT}},
        }
    },
)
_PAUSED = {
    "type": "object",
    "required": ["id", "paused"],
    "properties": {"id": _TEXT, "paused": {"type": "boolean"}},
}
PAUSE = _route(
    "Pause a subscription",
    (404, 501, *_COMMON),
    {200: _answer("Nothing is delivered until it is resumed; what comes is kept.", _PAUSED)},
    parameters=[_ID],
)
RESUME = _route(
    "Resume a subscription",
    (404, 501, *_COMMON),
    {200: _answer("It delivers again.", _PAUSED)},
    parameters=[_ID],
)
SEEK = _route(
    "Move a subscription to a time or a position",
    (400, 404, 408, 413, 415, 501, *_COMMON),
    {
        200: _answer(
            "It goes on from there; so many events that waited are dropped, or would be.",
            {
                "type": "object",
                "required": ["id", "dropped", "unread"],
                "properties": {
                    "id": _TEXT,
                    "dropped": {"type": "integer"},
                    "unread": {
                        "type": "boolean",
                        "description": "Whether what was not read may be passed over.",
                    },
                },
            },
        )
    },
    description=(
        "What follows is delivered, also what had been acknowledged, as far back as journals and lakes go. "
        "What is before and was not acknowledged is dropped; with dry, it is only said how much that would be."
    ),
    parameters=[_ID],
    requestBody=_body(content={JSON: {"schema": {"oneOf": [_SINCE, _AFTER]}}}),
)
DOCS = _route("This description, for people", (), {200: _answer("A page.", _TEXT, "text/html")})
HEALTH = _route(
    "Whether the broker is well",
    (),
    {
        200: _answer("It is.", _TEXT, "text/plain"),
        503: _answer("It cannot write, and why.", _TEXT, "text/plain"),
    },
)
METRICS = _route("Metrics for Prometheus", (401, 403), {200: _answer("All of them.", _TEXT, "text/plain")})

VERSION = "0.1.0"  # of what is described
COMPONENTS = {
    "schemas": {"Problem": _PROBLEM},
    "securitySchemes": {
        "token": {"type": "http", "scheme": "bearer"},
        "certificate": {
            "type": "mutualTLS",
            "description": "A certificate that the broker's authority signed.",
        },
    },
}


def document(title: str, routes: Iterable[Route]) -> dict[str, Any]:
    """The description of all routes that have one."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        if route.description is not None:
            method = route.method.lower()
            id = re.sub(r"\W", "_", f"{getattr(route.handle, '__name__', '')}{route.path}") + f"_{method}"
            paths.setdefault(route.path, {})[method] = {"operationId": id, **route.description}
    info = {"title": title, "version": VERSION}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": COMPONENTS}
