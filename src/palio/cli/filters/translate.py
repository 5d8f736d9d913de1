"""`palio translate`: what does a filter of another system mean in our own language, or in a third one?"""

from __future__ import annotations

from typing import Annotated

import typer

from palio.cli.program.dressing import argument, option
from palio.cli.program.terminal import ExitCode, help_epilog, say, write_line
from palio.language import DIALECTS, PALIO, WRITERS, read_filter, write_filter

EPILOG = help_epilog(
    """palio translate --from cesql "type LIKE 'com.shop.%' AND hop < ttl\"""",
    """palio translate --from jms "symbol = 'IBM' AND volume > 1000\"""",
    "palio translate --from mqtt 'shop/+/books/#?price>10'",
    """palio translate --from eventbridge '{"total": [{"numeric": [">", 5]}]}'""",
    """palio translate --from palio --to mqtt 'topic matches "shop/*/books/**"'""",
)
_KNOWN, _WRITTEN = ", ".join(DIALECTS), ", ".join(WRITERS)


def translate(
    filter_text: Annotated[str, argument("FILTER", "The text of a filter.")],
    *,
    source: Annotated[str, option("DIALECT", f"What it is written in: {_KNOWN}.", "--from")],
    target: Annotated[str, option("DIALECT", f"What it shall be written in: {_WRITTEN}.", "--to")] = PALIO,
) -> None:
    """Say in our own language what a filter in another one was understood to mean.

    With --to it is said in another one instead, where it can be said there: what
    is written means exactly the same, or it is refused with the condition that
    has no words there.

    Exits with 1 if nothing can satisfy it; the reason is on standard error.
    """
    filter = read_filter(filter_text, source)
    write_line(write_filter(filter, target))
    if filter.contradiction is not None:
        say(f"This filter can never match: {filter.contradiction}")
        raise typer.Exit(ExitCode.NO)
