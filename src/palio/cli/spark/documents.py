"""`palio spark documents`: XML documents of a lake, with values of paths; and subscriptions that want them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from palio.cli.input.inputs import Dialect
from palio.cli.program.dressing import argument, flag, option
from palio.cli.program.terminal import help_epilog, plural, say, write_json
from palio.cli.spark.archive import DEFAULT_LAKE
from palio.cli.spark.checkpoint import Since, moment_of
from palio.cli.spark.options import Master, Remote, Settings, opened
from palio.language import PALIO
from palio.model.moments import format_time
from palio.spark import jobs
from palio.spark.documents.families import families_at
from palio.spark.errors import WrongOption

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from palio.documents import Family

EPILOG = help_epilog(
    "palio spark documents --family card",
    "palio spark documents --family card --key c1 --versions",
    "palio spark documents palio://127.0.0.1:7070 --family card --path price",
    "palio spark documents --filters examples/filters.jsonl -o wanted",
    notes="`palio spark match` takes all events of a lake, documents among them.",
)
_BROKERS = ("palio://", "palios://", "quic://")
_PATHS = option("[NAME[:KIND]=]XPATH", "A column with what it finds, or a short name; repeat it.", "--path")


def documents(
    place: Annotated[str, argument("[PLACE]", "A lake, sqlite:///…, or palio://….")] = DEFAULT_LAKE,
    *,
    journals: Annotated[str | None, option("URL", "And what these journals have after the lake.")] = None,
    family: Annotated[str | None, option("NAME", "Documents of this family only.")] = None,
    key: Annotated[str | None, option("KEY", "The document with this key only.")] = None,
    versions: Annotated[bool, flag("--versions", "All versions, those withdrawn among them.")] = False,
    since: Since = None,
    until: Annotated[str | None, option("WHEN", "As it was before this time.")] = None,
    paths: Annotated[list[str] | None, _PATHS] = None,
    families: Annotated[
        str | None, option("URL", "A broker that knows the families, if no place is one.")
    ] = None,
    subscriptions: Annotated[
        str | None, option("PLACE", "Show which of these filters want which document.", "--filters", "-f")
    ] = None,
    dialect: Dialect = PALIO,
    output: Annotated[
        str | None, option("FOLDER", "Parquet, with the documents themselves.", "--output", "-o")
    ] = None,
    overwrite: Annotated[bool, flag("--overwrite", "Replace what the output holds.")] = False,
    master: Master = None,
    remote: Remote = None,
    conf: Settings = None,
) -> None:
    """Show the current XML documents of a lake or of journals, with values of XPaths.

    The current version of a document is the latest; with --until, the latest
    then. One that was withdrawn has none. A path may be any XPath 1.0, also one
    that the family did not have when the document was published.

    With --filters, Parquet or JSON lines of new subscriptions, it shows the pairs
    (event_id, subscription_id) of current documents and the filters that select
    them. Filters may name XPaths: family card where xpath("/card/price") < 10.
    """
    for text in (since, until):
        moment_of(text)
    if subscriptions is not None and (versions or key or paths or since or until):
        raise WrongOption("filters", "It takes all current documents of a --family, or of all.")
    with opened(master, remote, conf, "documents") as spark:
        known = _families(families, journals, place, needed=bool(paths))
        if subscriptions is not None:
            matched = jobs.match_documents(
                spark,
                place,
                subscriptions,
                journals=journals,
                family=family,
                families=known,
                dialect=dialect,
                output=output,
                overwrite=overwrite,
            )
            _show(matched.pairs, output, "pair")
            return
        read = jobs.documents(
            spark,
            place,
            journals=journals,
            family=family,
            key=key,
            versions=versions,
            since=since,
            until=until,
            families=known,
            paths=paths,
            output=output,
            overwrite=overwrite,
        )
        shown = read.documents
        if output is None:
            sized = "octet_length(document) AS bytes"
            shown = shown.selectExpr("*", sized).drop("document", "payload").orderBy("family", "key", "time")
        _show(shown, output, "document")


def _families(said: str | None, journals: str | None, place: str, *, needed: bool) -> tuple[Family, ...]:
    """Those of the broker that is named, by an option of its own or as the source of events."""
    brokers = [one for one in (said, journals, place) if one is not None and one.startswith(_BROKERS)]
    if brokers:
        return families_at(brokers[0])
    if needed:
        raise WrongOption("families", "A path is one of a family: name a broker that knows it (palio://…).")
    return ()


def _show(table: DataFrame, output: str | None, what: str) -> None:
    if output is not None:
        say(f"{plural(table.count(), what)} in {output}")
        return
    rows = 0
    for row in table.toLocalIterator():
        write_json(_plain(row))
        rows += 1
    if not rows:
        say(f"There is no such {what}.")


def _plain(row: Row) -> dict[str, Any]:
    """A row as JSON has it, without what is null."""
    told = {name: value for name, value in row.asDict().items() if value is not None and value is not False}
    return {name: _readable(value) for name, value in told.items()}


def _readable(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_time(value.astimezone())
    return [_readable(one) for one in value] if isinstance(value, list) else value
