"""Families over HTTP: `/families`. A family is put as a JSON document, or as its schema with the rest in the
address:

    curl -T card.xsd -H 'Content-Type: application/xml' 'http://…/families/card?key=/card/code'

Putting what is there already changes nothing. Everything is asked of the broker as by any client (`requests`),
so rights, limits and the operation log are the same.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from starlette.responses import Response

from palio.broker.access.rights import Allowance
from palio.broker.documents.descriptions import Ready
from palio.broker.extension import Route
from palio.broker.gateway.call import IN_THREAD, json_answer
from palio.broker.gateway.openapi import COMMON, Given, Operation, Parameter, good
from palio.broker.gateway.parameters import read_flag
from palio.documents.family import MAX_KEYS, MAX_PATHS, MAX_SCHEMAS, PathKind
from palio.documents.making import WantedPath
from palio.model import jsontext
from palio.model.errors import WrongParameter
from palio.model.formats import JSON, WrongMediaType, is_json, is_xml, media_type_of
from palio.protocol.invocations import Invoke, Invoked

if TYPE_CHECKING:
    from palio.broker.gateway.call import Call

XML: Final = "application/xml"
_ALL, _ONE = "/families", "/families/{name}"
_PATIENCE: Final = 60.0  # seconds: a schema is compiled, and the network asked
_CONVERTED: Final = 6 * 1_048_576  # bytes of a body: the files of a schema, as JSON writes them

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
Texts = list[str]


class SchemaText(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A file of a schema: its text, or its bytes in base64 if they are no UTF-8."""

    name: str
    content: str | None = None
    base64: str | None = None

    def file(self, place: str) -> dict[str, Any]:
        """As it is handed over. Raises `WrongParameter`."""
        if (self.content is None) == (self.base64 is None):
            raise WrongParameter(place, "It has `content`, or else `base64`.")
        if self.content is not None:
            return {"name": self.name, "content": self.content.encode(errors="replace")}
        try:
            return {"name": self.name, "content": base64.b64decode(self.base64 or "", validate=True)}
        except (binascii.Error, ValueError):
            raise WrongParameter(f"{place}.base64", "This is no base64.") from None

    @classmethod
    def of(cls, file: dict[str, Any]) -> SchemaText:
        try:
            return cls(file["name"], file["content"].decode())
        except UnicodeDecodeError:
            return cls(file["name"], None, base64.b64encode(file["content"]).decode())


class FamilyText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A family as it is put; what is not said is taken from the schema."""

    key: Annotated[list[str], msgspec.Meta(min_length=1, max_length=MAX_KEYS)]
    schemas: Annotated[list[SchemaText], msgspec.Meta(max_length=MAX_SCHEMAS)] = []
    paths: Annotated[list[str | WantedPath], msgspec.Meta(max_length=MAX_PATHS)] = []
    prefixes: dict[str, str] = {}
    namespace: str | None = None
    root: str | None = None
    registered: bool = False


class ShownPath(msgspec.Struct, frozen=True):
    """A path, and what its values are held as."""

    expression: str
    kind: PathKind
    many: bool
    name: str | None


class ShownFamily(msgspec.Struct, frozen=True, omit_defaults=True):
    """A family, with the names of the files of its schema."""

    name: str
    namespace: str
    root: str
    revision: int
    registered: bool
    key: list[str]
    prefixes: dict[str, str]
    paths: list[ShownPath]
    schemas: list[str]
    broken: list[str] = []  # what a change by force has broken


class WholeFamily(msgspec.Struct, frozen=True):
    """A family with its schema."""

    name: str
    namespace: str
    root: str
    revision: int
    registered: bool
    key: list[str]
    prefixes: dict[str, str]
    paths: list[ShownPath]
    schemas: list[SchemaText]


_NAME = Parameter("name", Name, place="path")
_READY = Parameter("ready", Ready, "Answer when this broker, or the network (which is usual) knows.")
_OF_SCHEMA = (
    Parameter("path", Texts, "With a schema as the body: [NAME[:KIND]=]XPATH; repeat it."),
    Parameter("key", Texts, "With a schema as the body: an XPath; repeat it."),
    Parameter("prefix", Texts, "With a schema as the body: PREFIX=NAMESPACE; repeat it."),
    Parameter("root", str, "With a schema as the body: the root element, if the key does not begin with it."),
)
_PUTTING = (
    Parameter("without", Texts, "A path that it has and shall not have; repeat it."),
    Parameter("force", bool, "Change it even if that breaks what may be in use; the log says so."),
    _READY,
)
LIST = Operation(
    summary="List the families of documents",
    answers=good("All that the caller may see.", list[ShownFamily]),
    problems=(400, *COMMON),
)
GET = Operation(
    summary="Look at a family of documents",
    parameters=(_NAME,),
    answers=good("It, with its schema.", WholeFamily),
    problems=(400, 404, *COMMON),
)
PUT = Operation(
    summary="Add or change a family of documents",
    description=(
        "A schema may be the body, too. A family that is there is changed to what is said; paths that it has "
        "and that are not named stay."
    ),
    parameters=(_NAME, *_OF_SCHEMA, *_PUTTING),
    body={JSON: FamilyText, XML: str},
    answers={
        201: Given("It is added.", {JSON: ShownFamily}, {"Location": "Where it is."}),
        200: Given("It was there, and is like that.", {JSON: ShownFamily}),
    },
    problems=(400, 408, 409, 413, 415, 501, *COMMON),
)
DELETE = Operation(
    summary="Remove a family of documents",
    parameters=(_NAME, _READY),
    answers={204: Given("It is gone.")},
    problems=(400, 404, 409, *COMMON),
)


def family_routes() -> tuple[Route, ...]:
    """What can be done with families by requests."""
    link = "families", "families of XML documents"
    return (
        Route("GET", _ALL, _list, LIST, reads=True, link=link),
        Route("GET", _ONE, _get, GET, reads=True),
        Route("PUT", _ONE, _put, PUT),
        Route("DELETE", _ONE, _delete, DELETE),
    )


async def _list(call: Call) -> Any:
    _require_known(call, LIST)
    visitor = await call.enter("families")
    try:
        found: list[dict[str, Any]] = []
        onward: str | None = ""
        while onward is not None:
            answer: Invoked = await visitor.ask(Invoke(0, "family.ls", {"after": onward}), _PATIENCE)
            found += answer.result["families"]
            onward = answer.result["onward"]
        return found
    finally:
        visitor.leave()


async def _get(call: Call) -> Any:
    _require_known(call, GET)
    found = await _ask(call, "family.show", {"name": call.path["name"]})
    return found | {"schemas": [SchemaText.of(file) for file in found["schemas"]]}


async def _put(call: Call) -> Response:
    _require_known(call, PUT)
    call.principal.require(Allowance.FAMILIES, "add or change a family of documents")
    media_type = media_type_of(call.headers.get("content-type", ""))
    if is_json(media_type):
        if said := {one.name for one in _OF_SCHEMA} & set(call.query):
            raise WrongParameter(min(said), "This goes with a schema as the body; say it in the document.")
        async with call.body(_CONVERTED) as body:
            argument = await (asyncio.to_thread(_read, body) if len(body) > IN_THREAD else _at_once(body))
    elif is_xml(media_type):
        async with call.body(_CONVERTED) as body:
            argument = _of_query(call, body)
    else:
        raise WrongMediaType(media_type, f"{JSON} or {XML}")
    argument |= {
        "name": call.path["name"],
        "without": call.query.getlist("without"),
        "force": read_flag("force", call.query.get("force", "false")),
        "ready": _ready(call),
    }
    made = await _ask(call, "family.put", argument)
    new = made.pop("new")
    shown = msgspec.convert(made, ShownFamily)
    return json_answer(shown, 201 if new else 200, {"Location": f"{_ALL}/{shown.name}"} if new else None)


async def _delete(call: Call) -> Response:
    _require_known(call, DELETE)
    await _ask(call, "family.remove", {"name": call.path["name"], "ready": _ready(call)})
    return Response(status_code=204)


async def _ask(call: Call, what: str, argument: dict[str, Any]) -> Any:
    """Ask the broker, as whoever calls. Raises what it refuses with."""
    visitor = await call.enter("families")
    try:
        answer: Invoked = await visitor.ask(Invoke(0, what, argument), _PATIENCE)
        return answer.result
    finally:
        visitor.leave()


async def _at_once(body: bytes) -> dict[str, Any]:
    return _read(body)


def _read(body: bytes) -> dict[str, Any]:
    """A family as it is asked for. Raises `InvalidNotification` for no JSON, and `WrongParameter`."""
    try:
        said = msgspec.convert(jsontext.read(body), FamilyText)
    except msgspec.ValidationError as problem:
        reason, _, path = str(problem).partition(" - at `")
        raise WrongParameter(path.rstrip("`") or "$", f"{reason}.") from None
    argument: dict[str, Any] = msgspec.to_builtins(said)
    argument["schemas"] = [one.file(f"$.schemas[{place}]") for place, one in enumerate(said.schemas)]
    return argument


def _of_query(call: Call, schema: bytes) -> dict[str, Any]:
    """A family of which the schema is the body. Raises `WrongParameter`."""
    query = call.query
    prefixes: dict[str, str] = {}
    for text in query.getlist("prefix"):
        prefix, equals, namespace = text.partition("=")
        if not equals:
            raise WrongParameter("prefix", "It is written PREFIX=NAMESPACE.")
        prefixes[prefix] = namespace
    return {
        "schemas": [{"name": f"{call.path['name']}.xsd", "content": schema}],
        "paths": query.getlist("path"),
        "key": query.getlist("key"),
        "prefixes": prefixes,
        "root": query.get("root"),
    }


def _ready(call: Call) -> str:
    said = call.query.get("ready", "network")
    if said not in ("broker", "network"):
        raise WrongParameter("ready", "It is `broker` or `network`.")
    return said


def _require_known(call: Call, operation: Operation) -> None:
    """Raises `WrongParameter` for one that there is not."""
    known = sorted(one.name for one in operation.parameters if one.place == "query")
    if unknown := set(call.query) - set(known):
        there = f"there are {', '.join(known)}" if known else "there is none"
        raise WrongParameter(min(unknown)[:80], f"There is no such parameter; {there}.")
