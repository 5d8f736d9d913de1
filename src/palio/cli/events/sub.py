"""`palio sub`: events as they come, one a line."""

from __future__ import annotations

import sys
from functools import partial
from typing import Annotated, Any, TypedDict

import msgspec
import typer

from palio.cli.input.inputs import Dialect
from palio.cli.input.positions import parse_beginning
from palio.cli.output.formats import Format, FormatText, format_of
from palio.cli.program.connecting import Server, Timeout, connected, for_at_most, run
from palio.cli.program.dressing import argument, flag, option
from palio.cli.program.terminal import ExitCode, error_console, help_epilog, plural, say
from palio.client import Client, Subscription
from palio.client.attaching import Since
from palio.client.dialling import Backoff
from palio.client.durable import DurableSubscription
from palio.language import PALIO, is_selection, read_filter
from palio.model.errors import NoSuchSubscription
from palio.model.moments import parse_span

EPILOG = help_epilog(
    "palio sub 'price > 100' --count 1 --timeout 1s",
    "palio sub --format text --timeout 1s",
    "palio sub 'exists(price)' --format '{symbol} costs {price}' --timeout 1s",
    "palio sub 'shop/+?price>10' --dialect mqtt --timeout 1s",
    "palio sub 'price > 100' --durable desk-7 --since 1h --timeout 2s",
    "palio sub 'price > 100' --since siena/17 --timeout 2s",
    "palio sub 'price > 200' --durable desk-7 --change --timeout 2s",
    "palio sub 'exists(xml.family)' --retroactive --timeout 1s",
    "palio sub 'price > 100' --durable desk-8 --attempts 3 --timeout 2s",
)


class Retrying(TypedDict, total=False):
    """What a durable subscription is asked to do with what fails, and how long it stays."""

    attempts: int
    backoff: Backoff
    linger: float


class SubscribeWishes(msgspec.Struct, frozen=True):
    """What is asked for, and when it is enough."""

    filter: str | None
    count: int | None
    timeout: float | None
    durable: str | None
    since: Since | None
    ready: bool
    change: bool = False
    retroactive: bool = False
    retry: Retrying = {}


def sub(
    filter_text: Annotated[str | None, argument("[FILTER]", "What is wanted; without it, everything.")] = None,
    *,
    server: Server = None,
    count: Annotated[int | None, typer.Option("--count", "-n", min=1, help="End after so many events.")] = None,
    timeout: Timeout = None,
    format_text: FormatText = "json",
    dialect: Dialect = PALIO,
    durable: Annotated[
        str | None, option("NAME", "A subscription that stays, and keeps what comes while nobody reads.")
    ] = None,
    since: Annotated[
        str | None, option("WHEN", "History first: 1h, 7d, a date, all, or BROKER/SEQUENCE.")
    ] = None,
    retroactive: Annotated[
        bool, flag("--retroactive", "Current XML documents first, then what is published.")
    ] = False,
    change: Annotated[bool, flag("--change", "Give a durable subscription that is there this filter.")] = False,
    attempts: Annotated[
        int | None, option("NUMBER", "With --durable: attempts until an event is a dead letter.", min=1)
    ] = None,
    backoff: Annotated[
        str | None,
        option("SPAN[,SPAN]", "With --durable: the pause between attempts; doubled up to the second."),
    ] = None,
    linger: Annotated[
        str | None, option("SPAN", "With --durable: how long it stays when nobody reads: 1h, 7d.")
    ] = None,
    ready: Annotated[
        bool, flag("--ready", "Say on standard error when the whole network knows of it.")
    ] = False,
    quiet: Annotated[bool, flag("--quiet", "Nothing on standard error but errors.", "-q")] = False,
) -> None:
    """Show the events that a filter selects, one a line, as they come.

    json is the event's content, as palio pub reads it; full has also its id,
    time, origin, sequence and attempt; text is for people. A template names
    attributes in braces, and {$id}, {$time}, {$origin}, {$sequence} and {$event}.

    An event of a durable subscription is acknowledged once it is written. A
    lost connection is made again, and what was durable goes on where it was.
    Ctrl-C ends the reading, not the subscription: it stays, and keeps what comes
    for whoever reads next, until palio subs rm ends it.

    Documents are asked for by XPath: family card where xpath("/card/price") < 10.

    A durable subscription that is there with another filter is not changed by
    this without --change. Without a filter it is read as it is.

    --retroactive begins with the current documents that the filter selects, each
    once; versions that are not current any more never come.

    --since siena/17 goes on after that event of the broker siena, and has of
    others what they publish from now on. If the journal of a broker came back
    older than it was, what may be missing is told.

    Exits with 0, or with 1 if the time is over and less than --count events,
    or none at all, have come.
    """
    if filter_text is not None and not (dialect == PALIO and is_selection(filter_text)):
        filter = read_filter(filter_text, dialect).require_satisfiable()
        filter_text = str(filter) if filter.source is None else filter.source
    if change and (durable is None or filter_text is None):
        raise typer.BadParameter("--change goes with --durable, and the filter that it shall have.")
    within = None if timeout is None else parse_span(timeout)
    begin = None if since is None else parse_beginning(since)
    if retroactive and (filter_text is None or change or since is not None):
        raise typer.BadParameter("--retroactive goes with a filter, and not with --since or --change.")
    retry = _retrying(durable, attempts, backoff, linger)
    wanted = SubscribeWishes(filter_text, count, within, durable, begin, ready, change, retroactive, retry)
    shown = run(follow(server, wanted, format_of(format_text), quiet=quiet))
    if shown < (count or 1):
        if not quiet:
            came = f"Only {plural(shown, 'event')} came" if shown else "No event came"
            say(f"{came} within {timeout}.")
        raise typer.Exit(ExitCode.NO)


def _retrying(durable: str | None, attempts: int | None, backoff: str | None, linger: str | None) -> Retrying:
    """How a durable subscription is tried again, and how long it stays."""
    wishes = {"--attempts": attempts, "--backoff": backoff, "--linger": linger}
    wished = [name for name, wish in wishes.items() if wish is not None]
    if wished and durable is None:
        raise typer.BadParameter(f"{wished[0]} is for a durable subscription; name one: --durable NAME.")
    found: Retrying = {}
    if attempts is not None:
        found["attempts"] = attempts
    if backoff is not None:
        first, _, longest = backoff.partition(",")
        found["backoff"] = Backoff(first=parse_span(first), longest=parse_span(longest or first))
    if linger is not None:
        found["linger"] = parse_span(linger)
    return found


async def follow(server: str | None, wanted: SubscribeWishes, format: Format, *, quiet: bool) -> int:
    """Write events until it is enough. Returns how many."""
    console = error_console()
    shown = told = 0
    async with connected(server, tell=not quiet) as client:
        subscription = await _subscribe(client, wanted)
        if wanted.ready or (console.is_terminal and not quiet):
            console.print(_greeting(client, subscription), style="dim", soft_wrap=True)
        if isinstance(subscription, DurableSubscription) and subscription.paused and not quiet:
            sentence = f"It is paused: nothing comes before palio subs resume {subscription.name}."
            console.print(sentence, style="yellow", soft_wrap=True)
        async with for_at_most(wanted.timeout):
            async for event in subscription:
                sys.stdout.write(format(event) + "\n")
                sys.stdout.flush()
                await event.ack()
                shown += 1
                told = _tell_gaps(subscription, told)
                if shown == wanted.count:
                    break
        _tell_gaps(subscription, told)
        lost = subscription.statistics()
        if dropped := lost.lost_by_broker + sum(lost.dropped.values()):
            console.print(f"{plural(dropped, 'event')} were not shown: they came too fast.", style="yellow")
        if wanted.durable is not None:
            await client.drain(5.0)
    return shown


async def _subscribe(client: Client, wanted: SubscribeWishes) -> Subscription[Any]:
    subscribe = partial(
        client.subscribe,
        durable=wanted.durable,
        since=wanted.since,
        ready="network" if wanted.ready else "broker",
        change=wanted.change,
        retroactive=wanted.retroactive,
        **wanted.retry,
    )
    if wanted.filter is not None or wanted.durable is None:
        return await subscribe(wanted.filter or "true")
    try:
        return await subscribe(None)
    except NoSuchSubscription:
        return await subscribe("true")


def _tell_gaps(subscription: Subscription[Any], told: int) -> int:
    """Say what may be missing and was not said yet. Returns how many gaps have been."""
    gaps = subscription.gaps if isinstance(subscription, DurableSubscription) else []
    for gap in gaps[told:]:
        if gap.what == "older":
            say(f"A journal came back older than it was: what it had, {gap}, may be missing.", "yellow")
        else:
            say(f"A disk has damaged events: {gap} is missing.", "yellow")
    return len(gaps)


def _greeting(client: Client, subscription: Subscription[Any]) -> str:
    """What was subscribed to, and what Ctrl-C will end."""
    if not isinstance(subscription, DurableSubscription) or subscription.is_temporary:
        return f"Subscribed at {client.broker}; Ctrl-C ends it."
    made = "new" if subscription.created else "there already"
    return (
        f"Subscribed at {client.broker} to the durable subscription {subscription.name} ({made}): "
        f"{subscription.filter}\nCtrl-C ends the reading; the subscription stays, and keeps what comes "
        f"(palio subs rm {subscription.name} ends it)."
    )
