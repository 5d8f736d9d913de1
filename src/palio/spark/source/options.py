"""The options of `format("palio")`: all that can be wrong with them is found before anything is read."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from palio.language import PALIO, read_filter, require_dialect
from palio.model.filter import Filter
from palio.spark.errors import WrongOption
from palio.spark.source.journals import WantedEvents, require_open
from palio.spark.source.moments import moment
from palio.spark.source.offsets import Offset

# Sequences in one partition. Small enough for a task to be repeated without regret.
ROWS_PER_PARTITION = 250_000
READING = (
    "url", "path", "filter", "dialect", "since", "until", "pushdown", "rowsPerPartition", "failOnDataLoss",
    "maxRowsPerTrigger", "startingOffsets", "endingOffsets", "reader",
)  # fmt: skip


class ReadOptions(msgspec.Struct, frozen=True):
    """How to read."""

    url: str
    filter: str | None = None
    since: float = 0.0
    until: float = math.inf
    pushdown: bool = False
    rows_per_partition: int = ROWS_PER_PARTITION
    fail_on_data_loss: bool = True
    max_rows_per_trigger: int | None = None
    starting: str | Offset = "earliest"
    reader: str | None = None
    ending: Offset | None = None

    def wanted(self, more: Filter | None = None) -> WantedEvents:
        """What is selected, together with what `more` selects."""
        filter = None if self.filter is None else read_filter(self.filter)
        if more is not None:
            filter = more if filter is None else filter.intersect(more)
        return WantedEvents(filter, self.since, self.until, lossy=not self.fail_on_data_loss)


def read_options(given: Mapping[str, str]) -> ReadOptions:
    """From Spark's options. Raises `WrongOption` or `FilterSyntaxError`."""
    options = {name.lower(): value for name, value in given.items()}
    url = options.get("url") or options.get("path")
    if not url:
        raise WrongOption("url", "Say which broker or store: palio://…, sqlite:///… or postgresql://….")
    require_open(url)
    require_known(given, READING)
    dialect = require_dialect(options.get("dialect", PALIO))
    if (filter := options.get("filter")) is not None:
        filter = in_our_words(filter, dialect)
    read = ReadOptions(
        url,
        filter,
        moment("since", options.get("since"), 0.0),
        moment("until", options.get("until"), math.inf),
        _flag("pushdown", options, default=False),
        _number("rowsPerPartition", options, ROWS_PER_PARTITION) or ROWS_PER_PARTITION,
        _flag("failOnDataLoss", options, default=True),
        _number("maxRowsPerTrigger", options, None),
        _starting(options.get("startingoffsets", "earliest")),
        options.get("reader"),
        _offsets("endingOffsets", options["endingoffsets"], "") if "endingoffsets" in options else None,
    )
    if read.since >= read.until:
        raise WrongOption("since", "It is not before until.")
    return read


def in_our_words(filter: str | Filter, dialect: str) -> str:
    """The text of a filter in our own language. Raises what `read_filter` raises."""
    read = read_filter(filter, dialect)
    return read.source or str(read)


def require_known(given: Mapping[str, str], known: Iterable[str]) -> None:
    """Raises `WrongOption` for an option that there is not: one that is misspelt would do nothing."""
    names = {name.lower(): name for name in known}
    for name in given:
        if name.lower() not in names:
            close = difflib.get_close_matches(name.lower(), names, n=1)
            there = f"There are {', '.join(names.values())}."
            advice = f"Did you mean {names[close[0]]!r}?" if close else there
            raise WrongOption(name, f"There is no such option. {advice}")


def _flag(name: str, options: Mapping[str, str], *, default: bool) -> bool:
    text = options.get(name.lower(), str(default)).lower()
    if text not in ("true", "false"):
        raise WrongOption(name, "It is true or false.")
    return text == "true"


def _number(name: str, options: Mapping[str, str], default: int | None) -> int | None:
    text = options.get(name.lower())
    if text is None:
        return default
    if not text.isdecimal() or int(text) < 1:
        raise WrongOption(name, "It is a whole number of at least 1.")
    return int(text)


def _starting(text: str) -> str | Offset:
    if text in ("earliest", "latest"):
        return text
    return _offsets("startingOffsets", text, "earliest, latest, or ")


def _offsets(name: str, text: str, others: str) -> Offset:
    try:
        return Offset.of_json(msgspec.convert(json.loads(text), dict[str, Any]))
    except (ValueError, msgspec.ValidationError):
        raise WrongOption(name, f'It is {others}journals with sequences: {{"siena-1": 1200}}.') from None
