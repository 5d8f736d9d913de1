"""`palio chaos`: a network of brokers in which everything goes wrong, and what it still promises."""

from __future__ import annotations

import asyncio
import contextlib
import random
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import msgspec
import typer

from palio.cli.chaos.plan import FAULT_KINDS, FaultKind
from palio.cli.output.places import DEFAULT_CHAOS_REPORT
from palio.cli.program.connecting import run
from palio.cli.program.dressing import flag, option
from palio.cli.program.extras import missing_of
from palio.cli.program.terminal import ExitCode, error_console, help_epilog, output_console, plural, write_json
from palio.model.errors import PalioError
from palio.model.moments import parse_span
from palio.routing.overlay.settings import OverlayKind

if TYPE_CHECKING:
    from rich.console import Console

    from palio.cli.chaos.record import ChaosRecord
    from palio.cli.chaos.running import ChaosOptions

EPILOG = help_epilog(
    "palio chaos --brokers 4 --for 5s",
    "palio chaos --faults kill,split --seed 7",
    "palio chaos --overlay fixed --faults restart --rate 200 --data chaos-data",
)
_OVERLAYS = tuple([kind for kind in get_args(OverlayKind) if kind != "auto"])
_MOST_BROKERS = 60
_LONGEST = 3_600.0
_SHORTEST_HEARTBEAT = 0.2
_SHOWN_VIOLATIONS = 10
_REFRESH = 0.2


class WrongChaos(PalioError):
    """An option of `palio chaos` that cannot be used."""

    option: str
    reason: str
    sentence = "--{option}: {reason}"


def chaos(
    *,
    seconds: Annotated[str, option("SPAN", "How long things go wrong: 1m, 10m.", "--for")] = "1m",
    seed: Annotated[
        int | None, typer.Option(help="The same seed draws the same faults; printed in any case.")
    ] = None,
    brokers: Annotated[int, typer.Option(min=3, max=_MOST_BROKERS, help="How many brokers.")] = 15,
    overlay: Annotated[str, option("KIND", f"How brokers are linked: {', '.join(_OVERLAYS)}.")] = "tree",
    faults: Annotated[
        str, option("KINDS", f"What goes wrong, with commas between: {', '.join(FAULT_KINDS)}.")
    ] = ",".join(FAULT_KINDS),
    rate: Annotated[float, typer.Option(min=1, max=10_000, help="Events a second, of all publishers.")] = 60,
    durable: Annotated[
        int | None, typer.Option(min=0, max=500, help="Durable subscriptions; by default one for each broker.")
    ] = None,
    heartbeat: Annotated[str, option("SPAN", "The heartbeat of brokers and clients.")] = "1s",
    every: Annotated[str, option("SPAN", "How long it is between two faults, on average.")] = "4s",
    settle: Annotated[str, option("SPAN", "How long the network may take to be whole in the end.")] = "90s",
    config: Annotated[
        str | None, option("FILE", "Settings of all brokers, as for palio up, but for addresses and links.")
    ] = None,
    report: Annotated[Path, option("FILE", "Where the page goes.")] = DEFAULT_CHAOS_REPORT,
    data: Annotated[
        Path | None, option("FOLDER", "Keep the data and logs of all brokers in this new folder.")
    ] = None,
    as_json: Annotated[bool, flag("--json", "All that is known in the end, as a JSON object.")] = False,
) -> None:
    """Break a network of brokers in many ways, and check that it keeps its promises.

    It starts brokers as processes of this machine, with publishers, transient
    and durable subscriptions, and requests. Then it kills brokers (kill), cuts
    links (cut), splits the network in two (split), lets brokers stand still
    (stop), and restarts them one after the other (restart), all drawn from a
    seed. Durable subscriptions have to get everything that was confirmed, in
    order, and be told of what comes twice; transient ones lose nothing while all
    is well, and what they lose meanwhile is counted. A page shows it all.

    Exits with 0 if every promise was kept, and with 1 if one was broken. Brokers
    that it has not started are left alone. Ctrl-C ends everything at once.
    """
    if (missing := missing_of("broker")) is not None:
        raise missing
    options = _options(
        seed=seed, seconds=_span("for", seconds, 1.0, _LONGEST), brokers=brokers, durable=durable, rate=rate,
        overlay=overlay, faults=faults, heartbeat=_span("heartbeat", heartbeat, _SHORTEST_HEARTBEAT, 60.0),
        settle=_span("settle", settle, 1.0, _LONGEST), every=_span("every", every, 0.5, 600.0), config=config,
    )  # fmt: skip
    if data is not None and data.exists():
        raise WrongChaos("data", f"{data} is there already; name a folder that is not.")
    if not report.absolute().parent.is_dir():
        raise WrongChaos("report", f"There is no folder {report.parent}.")
    with _folder(data) as folder:
        record = run(_play(options, folder))
    from palio.cli.chaos.page import write_page  # noqa: PLC0415 (only when there is something to be told)

    write_page(record, report)
    if as_json:
        write_json(msgspec.to_builtins(record))
    else:
        _tell(output_console(), record, report)
    if not record.is_well:
        raise typer.Exit(ExitCode.NO)


def _options(
    *, seed: int | None, durable: int | None, overlay: str, faults: str, config: str | None, **more: Any
) -> ChaosOptions:
    from palio.broker.settings import load  # noqa: PLC0415 (it takes its time to load, as clients do)
    from palio.cli.chaos.running import ChaosOptions  # noqa: PLC0415 (as above)

    if overlay not in _OVERLAYS:
        raise WrongChaos("overlay", f"There is no kind {overlay!r}; there are {', '.join(_OVERLAYS)}.")
    kinds: list[FaultKind] = []
    for word in filter(None, map(str.strip, faults.split(","))):
        known = next((kind for kind in FAULT_KINDS if kind == word), None)
        if known is None:
            raise WrongChaos(
                "faults", f"There is no kind of fault {word!r}; there are {', '.join(FAULT_KINDS)}."
            )
        kinds.append(known)
    if not kinds:
        raise WrongChaos("faults", f"Name at least one kind of fault: {', '.join(FAULT_KINDS)}.")
    seed = random.randrange(1_000_000) if seed is None else seed
    durable = more["brokers"] if durable is None else durable
    again = {
        "seed": seed, "for": f"{more['seconds']:g}s", "brokers": more["brokers"], "overlay": overlay,
        "faults": ",".join(kinds), "rate": f"{more['rate']:g}", "durable": durable,
        "heartbeat": f"{more['heartbeat']:g}s", "every": f"{more['every']:g}s",
    }  # fmt: skip
    if config is not None:
        again["config"] = config
        more["settings"] = load(config, environment={})
    words = [word for key, value in again.items() for word in (f"--{key}", str(value))]
    return ChaosOptions(
        seed=seed,
        durable=durable,
        overlay=cast(OverlayKind, overlay),
        faults=tuple(kinds),
        command=shlex.join(["palio", "chaos", *words]),
        **more,
    )


def _span(name: str, text: str, shortest: float, longest: float) -> float:
    seconds = parse_span(text)
    if not shortest <= seconds <= longest:
        raise WrongChaos(name, f"{text} is not between {shortest:g} and {longest:,.0f} seconds.")
    return seconds


@contextlib.contextmanager
def _folder(data: Path | None) -> Iterator[Path]:
    """Where brokers keep what they keep: gone in the end, unless somebody wants it."""
    if data is not None:
        data.mkdir(parents=True)
        yield data
    else:
        with tempfile.TemporaryDirectory(prefix="palio-chaos-", ignore_cleanup_errors=True) as folder:
            yield Path(folder)


async def _play(options: ChaosOptions, folder: Path) -> ChaosRecord:
    from rich.live import Live  # noqa: PLC0415 (as above)
    from rich.text import Text  # noqa: PLC0415

    from palio.cli.chaos.running import ChaosRun  # noqa: PLC0415

    console = error_console()
    console.print(
        f"{options.command}\nStarting {plural(options.brokers, 'broker')} …", style="dim", soft_wrap=True
    )
    chaos = ChaosRun(options, folder, lambda line: console.print(line, soft_wrap=True))
    if not console.is_terminal:
        return await chaos.play()
    with Live(console=console, auto_refresh=False, transient=True) as live:

        async def show() -> None:
            while True:
                live.update(Text(chaos.status(), style="bold", no_wrap=True, overflow="ellipsis"), refresh=True)
                await asyncio.sleep(_REFRESH)

        showing = asyncio.create_task(show())
        try:
            return await chaos.play()
        finally:
            showing.cancel()


def _tell(console: Console, record: ChaosRecord, report: Path) -> None:
    counts = record.counts
    from palio.cli.chaos.record import repair_rows  # noqa: PLC0415 (as above)

    console.print(
        f"{plural(counts['confirmed'], 'event')} confirmed, {counts['delivered']:,} delivered; "
        f"transient subscriptions lost {counts['lost']:,} and got {counts.get('late', 0):,} late; "
        f"durable ones got {counts.get('again', 0):,} again, each marked.",
        soft_wrap=True,
    )
    for row in repair_rows(record.moments):
        longest = "not always before the next change" if row.longest is None else f"{row.longest:.1f} s at most"
        whole = f"routes whole within {row.within:g} s after {row.in_time} of {row.judged} ({longest})"
        if not row.judged:
            whole = "the next change came too soon to judge it"
        console.print(f"  {row.group}: {whole}, {row.lost:,} lost for others", soft_wrap=True, style="dim")
    lag = max([one.longest_lag for one in record.durable], default=0.0)
    unexcused = max([one.unexcused_lag for one in record.durable], default=0.0)
    console.print(
        f"The longest that a durable subscription waited for an event was {lag:.1f} s, and {unexcused:.1f} s "
        "while nobody was away.",
        soft_wrap=True,
    )
    if record.is_well:
        console.print("✓ Every promise was kept.", style="bold green")
    else:
        console.print(f"✗ {plural(counts['violations'], 'promise')} broken:", style="bold red")
        for sentence in record.violations[:_SHOWN_VIOLATIONS]:
            console.print(f"  {sentence}", soft_wrap=True)
        console.print(f"The same faults again, with logs: {record.command} --data chaos-data", soft_wrap=True)
    console.print(f"All of it is a page for the browser: {report}", soft_wrap=True)
