"""OpenAPI, from the types of what routes take and give. The tests hold the broker to it.

An `Operation` stands beside its route, with the types of parameters, bodies and answers. msgspec makes schemas
of all of them, and what has a name becomes a component.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import msgspec

from palio.broker.extension import Route
from palio.broker.gateway.problems import MEDIA_TYPE, Problem
from palio.model.formats import JSON

VERSION = "0.1.0"  # of what is described
# Statuses of what can be refused by any route at which somebody has to be known.
COMMON = (401, 403, 429, 503, 504)
# Statuses of what is refused before any route is looked for.
_BEFORE_ROUTES = (400, 414, 431)
HTML, TEXT = "text/html", "text/plain"
_PLACE = "#/components/schemas/{name}"
_SECURITY: list[dict[str, list[str]]] = [{}, {"token": []}, {"certificate": []}]
_SCHEMES = {
    "token": {"type": "http", "scheme": "bearer"},
    "certificate": {"type": "mutualTLS", "description": "A certificate that the broker's authority signed."},
}
_SENTENCES = {
    400: "What is wrong with the request.",
    401: "Nobody is known by this token or certificate, or none was shown.",
    403: "This is not allowed.",
    404: "There is nothing of that name.",
    408: "The request did not come in time.",
    409: "There is another one already.",
    410: "There was one, and it was withdrawn.",
    413: "It is too large.",
    414: "Its address is too long.",
    415: "It is of a kind, or encoded in a way, that is not known here.",
    429: "There are too many, or they come too fast.",
    431: "Its headers are too large.",
    501: "This broker keeps no journal.",
    503: "Not now; try again.",
    504: "There was no answer in time.",
}


class Parameter(msgspec.Struct, frozen=True):
    """What a request may say beside its body."""

    name: str
    type: Any
    description: str = ""
    place: Literal["query", "header", "path"] = "query"


class Given(msgspec.Struct, frozen=True):
    """An answer: what it means, what it brings by media type, and its headers with what they say."""

    description: str
    content: Mapping[str, Any] = {}
    headers: Mapping[str, str] = {}


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """What a route takes and gives."""

    summary: str
    description: str = ""  # more than the summary says
    parameters: tuple[Parameter, ...] = ()
    body: Mapping[str, Any] = {}  # by media type
    answers: Mapping[int, Given]
    problems: tuple[int, ...] = ()

    @property
    def given(self) -> Iterator[tuple[int, Given]]:
        """All answers: good ones, and problems."""
        yield from self.answers.items()
        for status in sorted({*self.problems, *_BEFORE_ROUTES}):
            yield status, Given(_SENTENCES[status], {MEDIA_TYPE: Problem})


def document(title: str, routes: Iterable[Route]) -> dict[str, Any]:
    """The description of all routes that have one."""
    described = [(route, route.description) for route in routes if route.description is not None]
    schemas = _Schemas(one for _, operation in described for one in _types(operation))
    paths: dict[str, dict[str, Any]] = {}
    for route, operation in described:
        paths.setdefault(route.path.replace(":path}", "}"), {})[route.method.lower()] = _operation(
            route, operation, schemas
        )
    components = {"schemas": schemas.components, "securitySchemes": _SCHEMES}
    info = {"title": title, "version": VERSION}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": components}


def _types(operation: Operation) -> Iterator[Any]:
    yield from [parameter.type for parameter in operation.parameters]
    yield from operation.body.values()
    for _, given in operation.given:
        yield from given.content.values()


class _Schemas:
    """The schemas of types. What is said of a text to msgspec is said as JSON Schema has it."""

    def __init__(self, types: Iterable[Any]) -> None:
        self._types = list(types)
        self._schemas, components = msgspec.json.schema_components(self._types, ref_template=_PLACE)
        self.components = {name: _portable(schema) for name, schema in sorted(components.items())}

    def of(self, one: Any) -> Any:
        return _portable(self._schemas[self._types.index(one)])

    def content(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """By media type."""
        return {media_type: {"schema": self.of(one)} for media_type, one in content.items()}


def _portable(schema: Any) -> Any:
    """With the end of a pattern as everybody writes it; Python's $ would let a newline follow."""
    if isinstance(schema, dict):
        changed = {name: _portable(part) for name, part in schema.items()}
        if isinstance(pattern := changed.get("pattern"), str):
            changed["pattern"] = re.sub(r"\\Z$", "$", pattern)
        return changed
    return [_portable(part) for part in schema] if isinstance(schema, list) else schema


def _operation(route: Route, operation: Operation, schemas: _Schemas) -> dict[str, Any]:
    method = route.method.lower()
    name = getattr(route.handle, "__name__", "")
    described: dict[str, Any] = {
        "operationId": re.sub(r"\W", "_", f"{name}{route.path}") + f"_{method}",
        "summary": operation.summary,
        "description": operation.description or operation.summary,
        "security": _SECURITY,
    }
    if operation.parameters:
        described["parameters"] = [_parameter(one, schemas) for one in operation.parameters]
    if operation.body:
        described["requestBody"] = {"required": True, "content": schemas.content(operation.body)}
    described["responses"] = {str(status): _answer(given, schemas) for status, given in operation.given}
    return described


def _parameter(parameter: Parameter, schemas: _Schemas) -> dict[str, Any]:
    described: dict[str, Any] = {"name": parameter.name, "in": parameter.place}
    described["required"] = parameter.place == "path"
    if parameter.description:
        described["description"] = parameter.description
    return described | {"schema": schemas.of(parameter.type)}


def _answer(given: Given, schemas: _Schemas) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": given.description}
    if given.content:
        answer["content"] = schemas.content(given.content)
    if given.headers:
        answer["headers"] = {
            name: {"schema": {"type": "string"}, "description": said} for name, said in given.headers.items()
        }
    return answer


def good(description: str, given: Any, media_type: str = JSON) -> dict[int, Given]:
    """The one good answer of most routes."""
    return {200: Given(description, {media_type: given})}
