"""`palio request` and `palio reply`: ask everybody whom a question concerns, and answer."""

from __future__ import annotations

from typing import Annotated

import typer

from palio.cli.input.inputs import Dialect
from palio.cli.input.templates import fill, parse_event
from palio.cli.program.connecting import Server, connected, for_at_most, run
from palio.cli.program.dressing import argument, flag, option
from palio.cli.program.terminal import ExitCode, help_epilog, plural, say, write_json
from palio.language import PALIO, read_filter
from palio.model import jsontext
from palio.model.filter import Filter
from palio.model.formats import from_document
from palio.model.moments import parse_span
from palio.model.notification import Notification

EPILOGS = {
    "request": help_epilog("palio request ask=price symbol=ACME --timeout 1s"),
    "reply": help_epilog(
        "palio reply 'ask = \"price\"' price=101.5 --timeout 1s",
        "palio reply --dialect mqtt 'shop/+/price' price=101.5 --timeout 1s",
    ),
}


def request(
    event: Annotated[list[str], argument("EVENT", "A JSON object, or pairs: ask=price symbol=ACME.")],
    *,
    server: Server = None,
    timeout: Annotated[str, option("SPAN", "How long to wait for replies.", "--timeout", "-t")] = "5s",
    expect: Annotated[int | None, typer.Option(min=1, help="So many replies are enough.")] = None,
    again: Annotated[bool, flag("--again", "Ask once more if the network has changed meanwhile.")] = False,
    quiet: Annotated[bool, flag("--quiet", "No summary.", "-q")] = False,
) -> None:
    """Ask everybody who takes this event, and show their replies as JSON lines.

    It ends as soon as all have answered; if nobody takes it, at once. Exits with
    0 if there was a reply, else with 1.
    """
    question = from_document(parse_event(event))
    replies, missing = run(_request(server, question, parse_span(timeout), expect, again=again))
    if not quiet:
        late = f", {missing:,} did not answer in time" if missing else ""
        counted = plural(replies, "replie") if replies != 1 else "1 reply"
        say(f"{counted}{late}")
    if not replies:
        raise typer.Exit(ExitCode.NO)


async def _request(
    server: str | None, question: Notification, timeout: float, expect: int | None, *, again: bool
) -> tuple[int, int]:
    async with connected(server) as client:
        replies = client.request(question, timeout=timeout, expect=expect, again=again)
        async for reply in replies:
            write_json(jsontext.read(reply.to_json()))
        return len(replies), replies.missing


def reply(
    filter_text: Annotated[str, argument("FILTER", "Which requests to answer.")],
    answer: Annotated[list[str], argument("EVENT", "The reply: a JSON object, or pairs.")],
    *,
    server: Server = None,
    dialect: Dialect = PALIO,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, help="End after so many replies.")
    ] = None,
    timeout: Annotated[str | None, option("SPAN", "End after this time.", "--timeout", "-t")] = None,
) -> None:
    """Answer requests that a filter selects, always with the same reply.

    Each request that is answered is shown as a line of JSON. The reply may
    contain {n}, {uuid}, {now} and {random:1:100}, as in palio pub.
    """
    filter = read_filter(filter_text, dialect).require_satisfiable()
    document = parse_event(answer)
    from_document(fill(document, 1))  # what is wrong with it is told at once
    seconds = None if timeout is None else parse_span(timeout)
    answered = run(_reply(server, filter, document, count, seconds))
    if answered < (count or 1):
        raise typer.Exit(ExitCode.NO)


async def _reply(
    server: str | None, filter: Filter, document: dict[str, object], count: int | None, timeout: float | None
) -> int:
    answered = 0
    async with connected(server, tell=True) as client:
        subscription = await client.subscribe(filter, ready="network")
        say(f"Answering at {client.broker}; Ctrl-C ends it.")
        async with for_at_most(timeout):
            async for event in subscription:
                if event.is_request:
                    answered += 1
                    await event.reply(from_document(fill(document, answered)))
                    write_json(jsontext.read(event.notification.to_json()))
                    if answered == count:
                        break
        await client.flush(arrived=True)
    return answered
