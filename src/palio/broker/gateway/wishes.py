"""What somebody wishes of a subscription, as it is read: a definition, its filter, and where it shall go on."""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

import msgspec

from palio.broker.gateway.definitions import Definition
from palio.broker.gateway.representations import Place
from palio.broker.gateway.sinks import require_form
from palio.broker.gateway.stream_request import read_position, read_since
from palio.language import PALIO, read_filter, read_filters, require_dialect, write_filter, written_text
from palio.model.constraint import Constraint
from palio.model.errors import WrongParameter
from palio.model.expression import Condition
from palio.model.filter import Filter
from palio.protocol.durable.control import Seek

# What is shown and not kept, and what is kept as one of the `filters`.
_NOT_KEPT = frozenset({"status", "filter", "dialect"})
# Headers that say what is sent, and are not for others to set.
_OURS = ("host", "authorization", "cookie", "connection", "transfer-encoding", "te", "upgrade", "expect")
_OUR_PREFIXES = ("ce-", "content-", "webhook-", "proxy-", "sec-")


def read_definition(document: Any, id: str) -> Definition:
    """What somebody wishes. Raises `WrongParameter`, and what is wrong with the sink."""
    if not isinstance(document, dict):
        raise WrongParameter("$", "A subscription is a JSON object.")
    said = _in_dialect(document)
    document = {name: value for name, value in document.items() if name not in _NOT_KEPT}
    if said is not None:
        others = document.get("filters")
        if others is None or isinstance(others, list):
            document["filters"] = [*(others or []), {PALIO: said}]
    try:
        definition = msgspec.convert({"id": id, **document}, Definition)
        msgspec.json.encode(definition)  # as it will be kept
    except UnicodeEncodeError:
        raise WrongParameter("$", "There is half a surrogate pair in a text.") from None
    except msgspec.ValidationError as problem:
        reason, _, path = str(problem).partition(" - at `")
        raise WrongParameter(path.rstrip("`") or "$", f"{reason}.") from None
    if definition.sink is not None:
        require_form(definition.sink)
    for name in definition.protocolsettings.headers:
        if name.lower() in _OURS or name.lower().startswith(_OUR_PREFIXES):
            raise WrongParameter(
                f"$.protocolsettings.headers.{name}",
                "This header is not for others to set; a token goes into `sinkcredential`.",
            )
    read_since(definition.config.since)
    if definition.config.retroactive and (definition.config.since != "now" or definition.sink is None):
        reason = "It is for a webhook, without `since`; readers ask for it with GET /events?retroactive=true."
        raise WrongParameter("$.config.retroactive", reason)
    return definition


def _in_dialect(document: dict[str, Any]) -> str | None:
    """In our own words, the filter that is there with its dialect; one without is what was shown, and no wish.

    Raises `WrongParameter`, and what is wrong with the filter.
    """
    text = written_text(document.get("filter"))
    if "filter" in document and text is None:
        raise WrongParameter("$.filter", "It is the text of a filter, or the JSON of one.")
    if "dialect" not in document:
        return None
    dialect = document["dialect"]
    if not isinstance(dialect, str):
        raise WrongParameter("$.dialect", "It is the name of a dialect, a string.")
    if text is None:
        raise WrongParameter("$.filter", "With a dialect, this is the text of a filter, or the JSON of one.")
    return write_filter(read_filter(text, require_dialect(dialect, "$.dialect")).require_satisfiable())


def read_place(document: Any, id: str) -> Seek:
    """Where a subscription shall go on. Raises `WrongParameter`."""
    try:
        place = msgspec.convert(document, Place)
    except msgspec.ValidationError as problem:
        reason, _, path = str(problem).partition(" - at `")
        raise WrongParameter(path.rstrip("`") or "$", f"{reason}.") from None
    if (place.since is None) == (place.position is None):
        raise WrongParameter("$", "Name `since` or `position`, and one of them only.")
    since = None if place.since is None else read_since(place.since)
    after = None if place.position is None else read_position(place.position)
    return Seek(id, since, after, place.dry)


def filter_of(definition: Definition) -> Filter:
    """What a subscription selects: source, one of the types, and all of the filters. Raises `FilterError`s."""
    filter = read_filters(definition.filters)
    if definition.source is not None:
        source = Constraint("=", definition.source)
        filter = filter.intersect(Filter.from_expression(Condition("source", source)))
    if definition.types is not None:
        types = Constraint("in", tuple(definition.types))
        filter = filter.intersect(Filter.from_expression(Condition("type", types)))
    return filter.require_satisfiable()


def new_id(document: Any, key: str | None) -> str:
    """The id of a wish that names none: the same for the same key, else one that nobody has had."""
    if isinstance(document, dict) and isinstance(document.get("id"), str):
        return str(document["id"])
    if key is not None:
        return hashlib.sha256(key.encode(errors="replace")).hexdigest()[:32]
    return secrets.token_hex(8)
