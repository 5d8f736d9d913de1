"""What the reader of an event stream asks for, and what it is told of that."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Annotated, Literal
from urllib.parse import quote, unquote

import msgspec
from msgspec import UNSET, Meta, UnsetType

from palio.broker.gateway.call import Call
from palio.broker.gateway.openapi import COMMON, Operation, Parameter, good
from palio.broker.gateway.parameters import POSITION_PATTERN, read_flag, read_number
from palio.language import DIALECTS, PALIO, read_filter, require_dialect
from palio.model.errors import WrongParameter, WrongTime
from palio.model.filter import Filter
from palio.model.formats import PLAIN_JSON, STRUCTURED, Format
from palio.model.moments import parse_since
from palio.model.naming import event_name, read_event_name
from palio.protocol.durable.lineage import Incarnation, Lineage, lineage_at

# Origins that the id of an event names; a stream from more cannot be resumed.
MAX_ORIGINS = 64
LONGEST_WAIT = 86_400.0
# Behind a position: the incarnation of the journal that numbered it (`palio.protocol.durable.lineage`); behind
# the name of an event, when it was published.
_INCARNATION = re.compile(r"(?P<number>[0-9a-f]{1,15})\.(?P<id>[0-9a-z-]{1,64})\.(?P<begins>[0-9]{1,18})")
_TIME = re.compile(r"t(?P<time>[0-9]{1,18}(\.[0-9]{1,18})?(e[+-]?[0-9]{1,2})?)")

Shape = Literal["json", "cloudevents"]
# As it was published, or as a CloudEvent in any case.
SHAPES: dict[str, Format] = {"json": PLAIN_JSON, "cloudevents": STRUCTURED}
_Position = Annotated[str, Meta(extra_json_schema={"pattern": f"^$|{POSITION_PATTERN}"})]
_QUERY = (
    Parameter(
        "filter",
        Annotated[str, Meta(examples=["price > 100"])],
        "What is wanted; without it everything, or what a durable subscription selects that is there.",
    ),
    Parameter(
        "dialect",
        Annotated[str, Meta(extra_json_schema={"default": PALIO, "enum": list(DIALECTS)})],
        "What the filter is written in.",
    ),
    Parameter(
        "durable", Annotated[str, Meta(min_length=1, max_length=255)], "The name of a durable subscription."
    ),
    Parameter(
        "change",
        Annotated[bool, Meta(extra_json_schema={"default": False})],
        "Whether a durable subscription that is there gets this filter; else another one is refused.",
    ),
    Parameter("since", str, "Begin in the past: all, now, a date, a time, 7d, or @ and seconds since 1970."),
    Parameter(
        "retroactive",
        Annotated[bool, Meta(extra_json_schema={"default": False})],
        "Begin with the current XML documents that the filter selects, and go on with what is published.",
    ),
    Parameter("format", Shape, "As published, or all as CloudEvents."),
    Parameter("last", _Position, "As Last-Event-ID, for those who cannot send headers."),
    Parameter(
        "wait",
        Annotated[float, Meta(ge=0, le=LONGEST_WAIT)],
        "End when nothing has come for so many seconds; without it the stream goes on.",
    ),
)

_Kind = Annotated[
    Literal["message", "lost", "end"],
    Meta(description="Where it is no notification: that some were lost, or why the stream ends."),
]


class SentEvent(msgspec.Struct):
    """Each event of the stream."""

    data: Annotated[str, Meta(extra_json_schema={"contentMediaType": "application/json"})]
    event: _Kind | UnsetType = UNSET
    id: Annotated[str, Meta(description="Where to go on (Last-Event-ID).")] | UnsetType = UNSET


STREAM = Operation(
    summary="Read events as they come",
    description=(
        "A subscription for whoever can read a stream: curl -N 'http://…/events?filter=price>100'. Each event "
        "has an id; whoever comes back with it (Last-Event-ID) goes on there. With durable, that acknowledges."
    ),
    parameters=(
        *_QUERY,
        Parameter("Last-Event-ID", _Position, "The id of the last event that was received.", "header"),
    ),
    answers=good("Server-sent events, without end.", SentEvent, "text/event-stream"),
    problems=(400, 409, 501, *COMMON),
)


class StreamWanted(msgspec.Struct, frozen=True):
    """What the reader of a stream asks for. No filter is everything, or that of the durable subscription."""

    filter: Filter | None
    durable: str | None = None
    since: str | float | None = None
    after: dict[str, int] | None = None
    lineages: dict[str, Lineage] | None = None  # of the journals that this is a position in
    last: str | None = None
    shape: Shape = "json"
    wait: float | None = None
    change: bool = False
    retroactive: bool = False


def read_since(given: str | float | None) -> str | float | None:
    """`all`, `now`, or a moment; a number (of JSON) is seconds since 1970. Raises `WrongParameter`."""
    if isinstance(given, float):
        return read_number("since", str(given), 0, 1e11)
    if given is None or given == "now":
        return given
    try:
        return parse_since(given, now=time.time())
    except WrongTime as problem:
        raise WrongParameter("since", f"{problem} `all` and `now` are understood, too.") from None


def read_position(text: str) -> dict[str, int]:
    """The id of an event: origins and sequences. Raises `WrongParameter`."""
    position: dict[str, int] = {}
    for part in text.split(","):
        named = read_event_name(part.partition("@")[0])
        if named is None:
            raise WrongParameter("Last-Event-ID", "This is no id of an event of a stream, such as siena/17.")
        position[unquote(named[0])] = named[1]
    if len(position) > MAX_ORIGINS:
        raise WrongParameter("Last-Event-ID", f"It names more than {MAX_ORIGINS} brokers.")
    return position


def read_lineages(text: str) -> dict[str, Lineage]:
    """In which incarnations of journals the events of a position were numbered, as far as its id says so."""
    lineages: dict[str, Lineage] = {}
    for part in text.split(","):
        name, _, mark = part.partition("@")
        found, named = _INCARNATION.fullmatch(mark), read_event_name(name)
        if found is not None and named is not None:
            one = Incarnation(int(found["number"], 16), found["id"], int(found["begins"]))
            lineages[unquote(named[0])] = (one,)
    return lineages


def read_time(text: str) -> float | None:
    """When an event was published, if its id says so: what tells it apart from another one of its name."""
    found = _TIME.fullmatch(text.partition("@")[2])
    return None if found is None else float(found["time"])


def write_position(position: dict[str, int], lineages: Mapping[str, Lineage] | None = None) -> str:
    """The id of an event, with who numbered what it names, where that is known."""
    return ",".join(
        event_name(quote(origin, safe=""), sequence) + _mark(sequence, (lineages or {}).get(origin, ()))
        for origin, sequence in position.items()
    )


def write_event(origin: str, sequence: int, time: float) -> str:
    """The id of an event of a durable subscription."""
    return f"{event_name(quote(origin, safe=''), sequence)}@t{time!r}"


def _mark(sequence: int, lineage: Lineage) -> str:
    return "".join([f"@{one.number:x}.{one.id}.{one.begins}" for one in lineage_at(sequence, lineage)[-1:]])


def read_wanted(call: Call, filter_text: str | None) -> StreamWanted:
    """What a reader asks for, whose filter has this text. Raises what is wrong with it."""
    query = call.query
    unknown = set(query) - {one.name for one in _QUERY}
    if unknown:
        known = ", ".join(sorted(one.name for one in _QUERY))
        raise WrongParameter(min(unknown)[:80], f"There is no such parameter; there are {known}.")
    durable = query.get("durable")
    if durable is not None and not 0 < len(durable) <= 255:
        raise WrongParameter("durable", "The name of a durable subscription has 1 to 255 characters.")
    shape = query.get("format", "json")
    if shape not in ("json", "cloudevents"):
        raise WrongParameter("format", "It is `json` or `cloudevents`.")
    dialect = query.get("dialect", PALIO)
    require_dialect(dialect, "dialect")
    filter = None if filter_text is None else read_filter(filter_text, dialect).require_satisfiable()
    change = read_flag("change", query.get("change", "false"))
    if change and (durable is None or filter is None):
        raise WrongParameter("change", "It goes with `durable` and the filter that it shall have.")
    retroactive = read_flag("retroactive", query.get("retroactive", "false"))
    if retroactive and ("since" in query or durable is not None):
        raise WrongParameter("retroactive", "It does not go with `since`, nor with `durable`.")
    given = [one for one in (call.headers.get("last-event-id"), query.get("last")) if one]
    positions = [read_position(one) for one in given]
    return StreamWanted(
        filter,
        durable,
        read_since(query.get("since")),
        positions[0] if positions and durable is None else None,
        read_lineages(given[0]) if given and durable is None else None,
        given[0] if given else None,
        shape,  # type: ignore[arg-type]
        read_number("wait", query["wait"], 0, LONGEST_WAIT) if "wait" in query else None,
        change,
        retroactive,
    )
