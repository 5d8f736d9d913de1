"""`palio journal verify`, `backup` and `restore`: whether a store is what was written, and copies of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from palio.cli.output.progress import MovingBar
from palio.cli.program.confirming import Yes, want_yes
from palio.cli.program.dressing import argument, flag, option
from palio.cli.program.terminal import (
    ExitCode,
    error_console,
    help_epilog,
    output_console,
    plural,
    printable,
    say,
    write_json,
)

if TYPE_CHECKING:
    from palio.store.verifying import VerifiedJournal, VerifiedStore

_STORE = "--store sqlite:///palio-data/palio.db"
VERIFY = help_epilog(f"palio journal verify {_STORE}", f"palio journal verify {_STORE} --deep --json")
BACKUP = help_epilog(f"palio journal backup copy.db {_STORE}")
RESTORE = help_epilog(f"palio journal restore copy.db {_STORE} --yes")

KeptIn = Annotated[str, option("URL", "The store: sqlite:///… or postgresql://…", "--store")]
OfBroker = Annotated[str | None, option("NAME", "Only that of one broker, where a store has several.")]
_DEFAULT = "sqlite:///palio-data/palio.db"


def verify(
    *,
    store: KeptIn = _DEFAULT,
    broker: OfBroker = None,
    deep: Annotated[bool, flag("--deep", "SQLite looks through all of its file, too.")] = False,
    as_json: Annotated[bool, flag("--json", "As a JSON object.")] = False,
) -> None:
    """Check that all of a store is there, and is what was written.

    Every event and letter is read, and compared with its checksum; so is the
    chain of checksums, that tells whether these are the events that were
    appended. It may be done beside a running broker: nothing is changed.

    Exit code 1: something is wrong, and named.
    """
    _verify(store, broker, deep=deep, as_json=as_json)


def back_up(file: Annotated[Path, argument("FILE", "Where to put it.")], *, store: KeptIn = _DEFAULT) -> None:
    """Copy a store to a file, also while its broker runs, and check the copy.

    The copy is of one moment. For PostgreSQL, use pg_dump.
    """
    from palio.store import copies  # noqa: PLC0415 (not needed to ask a broker)

    with MovingBar(error_console()) as bar:
        made = copies.back_up(store, file, told=bar.show)
    for name, head in made.heads.items():
        write_json({"file": made.file, "bytes": made.bytes, "journal": name, "last": head})
    _verify_copy(made.file)


def restore(
    file: Annotated[Path, argument("FILE", "What `palio journal backup` has made.")],
    *,
    store: KeptIn = _DEFAULT,
    yes: Yes = False,
) -> None:
    """Bring a copy back as the store of a broker that is stopped.

    A store that is there is moved aside, if you say --yes. With the next start a
    new lineage begins where the copy ends: other brokers notice, and tell which
    events their durable subscriptions may have missed.
    """
    from palio.store import copies  # noqa: PLC0415
    from palio.store.errors import StoreThere  # noqa: PLC0415

    try:
        with MovingBar(error_console()) as bar:
            done = copies.restore(file, store, replace=yes, told=bar.show)
    except StoreThere as problem:
        want_yes(str(problem))
    if done.moved is not None:
        say(f"What was there is in {printable(done.moved)} now.")
    for name, head in done.heads.items():
        write_json({"file": done.file, "journal": name, "last": head})
        say(f"The journal of {printable(name)} ends with {head:,}. Its next start begins a new lineage there.")
    _verify_copy(done.file)


def _verify_copy(file: str) -> None:
    from palio.store.errors import StoreTooOld  # noqa: PLC0415

    try:
        _verify(f"sqlite:///{file}", None, deep=True, as_json=False)
    except StoreTooOld:
        say("It is of an earlier version, without checksums, and could not be checked.", "yellow")


def _verify(store: str, broker: str | None, *, deep: bool, as_json: bool) -> None:
    from palio.store import verifying  # noqa: PLC0415

    with MovingBar(error_console()) as bar:
        verified = verifying.verify(store, broker, deep=deep, told=bar.show)
    if as_json:
        write_json({**msgspec.to_builtins(verified), "sound": verified.is_sound})
    else:
        _tell(verified)
    if not verified.is_sound:
        raise typer.Exit(ExitCode.NO)


def _tell(verified: VerifiedStore) -> None:
    console = output_console()
    for finding in [*verified.findings, *[one for each in verified.journals for one in each.findings]]:
        console.print(printable(f"{finding.what}: {finding.reason}"), style="red", soft_wrap=True)
    for one in verified.journals:
        console.print(printable(_in_short(one)), style="red" if one.findings else "green", soft_wrap=True)


def _in_short(one: VerifiedJournal) -> str:
    there = f"{plural(one.events, 'event')} up to {one.last:,}, {plural(one.letters, 'letter')}"
    without = f", {one.without_checksum:,} of an earlier version without checksums" * bool(one.without_checksum)
    outcome = plural(len(one.findings), "finding") if one.findings else "all is well"
    beside = f"; {plural(one.aside, 'thing')} aside (palio doctor)" * bool(one.aside)
    return f"{one.broker}: {there}{without}: {outcome}{beside}."
