"""`palio covers`: does one filter select all that another one does?"""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from palio.cli.input.inputs import Dialect
from palio.cli.input.selections import FamilyFiles, FilterReader
from palio.cli.program.connecting import Server
from palio.cli.program.dressing import argument, flag
from palio.cli.program.terminal import ExitCode, help_epilog, output_console, write_json
from palio.language import PALIO
from palio.model.filter import Filter

EPILOG = help_epilog(
    "palio covers 'price > 100' 'price > 200 and symbol = \"ACME\"'",
    "palio covers 'int level >= 51' 'int level > 50'",
    "palio covers 'name contains \"jeff\"' 'name ends with \"jeff\"' --json",
)


def covers(
    filter_text: Annotated[str, argument("FILTER", "The filter that may be the wider one.")],
    other_text: Annotated[str, argument("OTHER", "The filter that may lie within it.")],
    *,
    dialect: Dialect = PALIO,
    family: FamilyFiles = None,
    server: Server = None,
    as_json: Annotated[bool, flag("--json", "The answer as a JSON object.")] = False,
) -> None:
    """Say whether FILTER selects every event that OTHER selects.

    If not, an event is shown that OTHER selects and FILTER does not. A yes is
    always proven; for a few combinations of conditions on text, "no" may only
    mean that no proof was found, and then it says so.
    Exits with 0 for yes, 1 for no.

    Filters about XML documents are read with the families of the broker, or of
    --family.
    """
    reader = FilterReader(family, server)
    filter, other = reader.read(filter_text, dialect), reader.read(other_text, dialect)
    answer = _answer(filter, other)
    if as_json:
        write_json(answer)
    else:
        _show(output_console(), answer)
    if not answer["covers"]:
        raise typer.Exit(ExitCode.NO)


def _answer(filter: Filter, other: Filter) -> dict[str, Any]:
    covered = filter.covers(other)
    example = None if covered else filter.counterexample(other)
    return {
        "covers": covered,
        "equal": covered and other.covers(filter),
        "overlaps": filter.overlaps(other),
        "counterexample": None if example is None else json.loads(example.to_json()),
        "contradictions": {"filter": filter.contradiction, "other": other.contradiction},
    }


def _show(console: Console, answer: dict[str, Any]) -> None:
    def say(lead: str, sentence: str, style: str) -> None:
        console.print(Text.assemble((lead, f"bold {style}"), sentence), soft_wrap=True)

    for name, reason in answer["contradictions"].items():
        if reason is not None:
            say(f"{name.upper()} can never match: ", reason, "yellow")
    if answer["equal"]:
        say("Yes. ", "FILTER and OTHER select exactly the same events.", "green")
    elif answer["covers"]:
        say("Yes. ", "Every event that OTHER selects, FILTER selects too.", "green")
    elif answer["counterexample"] is not None:
        say("No. ", "This event satisfies OTHER but not FILTER:", "red")
        console.print(f"  {json.dumps(answer['counterexample'], ensure_ascii=False)}", soft_wrap=True)
    else:
        say("No. ", "It is not proven that FILTER selects all that OTHER does, nor is an example known.", "red")
    if not answer["covers"]:
        some = "They overlap: some events may satisfy both."
        console.print(
            some if answer["overlaps"] else "They do not overlap: no event satisfies both.", style="dim"
        )
