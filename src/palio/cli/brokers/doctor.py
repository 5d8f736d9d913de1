"""`palio doctor`: is everything there that Palio needs, and if not, what is to be done?"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Column, Table
from rich.text import Text

from palio.cli.program.connecting import run
from palio.cli.program.dressing import flag, option
from palio.cli.program.terminal import ExitCode, error_console, help_epilog, output_console
from palio.cli.spark.options import Master, Remote, Settings, opened
from palio.client import connect
from palio.model.errors import NotAuthenticated, PalioError
from palio.spark.runtime.health import Check, executor_checks, java_check, python_checks

EPILOG = help_epilog(
    "palio doctor --no-executors", notes="For a cluster: palio doctor --master spark://host:7077"
)
_HERE = "this machine"
# Enough tasks for each of some executors to get one.
_TASKS = 16
_SPACE = 1 << 30
# Seconds that something that has a port gets to say that it is a broker.
_ANSWER_WITHIN = 2.0


def doctor(
    *,
    store: Annotated[
        str, option("URL", "The store to look at: sqlite:///… or postgresql://…")
    ] = "sqlite:///palio-data/palio.db",
    listen: Annotated[
        list[str] | None, option("HOST:PORT", "A port that shall be free; 7070 and 7080 by default.")
    ] = None,
    executors: Annotated[
        bool, flag("--executors/--no-executors", "Whether to start Spark and look at its executors.")
    ] = True,
    master: Master = None,
    remote: Remote = None,
    conf: Settings = None,
) -> None:
    """Check Java, the compiled index, packages, the store, ports, and Spark's executors.

    Exit code 1: something is not as it should be; the last column says what to
    do about it.
    """
    with error_console().status("looking"):
        checks = list(_here(store, listen or ["127.0.0.1:7070", "127.0.0.1:7080"]))
        if executors:
            checks += _at_executors(checks, master, remote, conf)
    columns = [Column(name, overflow="fold") for name in ("", "where", "what", "found", "to do")]
    table = Table(*columns, header_style="dim", box=SIMPLE_HEAD, pad_edge=False)
    for one in checks:
        mark = Text("✓", style="green") if one.well else Text("✗", style="red")
        table.add_row(mark, one.where, one.name, Text(one.found), Text(one.advice))
    output_console().print(table)
    if not all(one.well for one in checks):
        raise typer.Exit(ExitCode.NO)
    output_console().print("All is well.", style="green")


def _here(store: str, listen: list[str]) -> Iterator[Check]:
    yield java_check(_HERE)
    yield from python_checks(_HERE)
    yield _store_check(store)
    yield from _aside_checks(store)
    for address in listen:
        yield _port_check(address)


def _store_check(url: str) -> Check:
    if url.startswith("sqlite:///"):
        return _folder_check(Path(url.removeprefix("sqlite:///")).absolute().parent)
    try:
        from sqlalchemy import create_engine, text  # noqa: PLC0415

        engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1))
        with engine.connect() as connection:
            connection.execute(text("select 1"))
    except ImportError:
        return Check(_HERE, "store", False, "SQLAlchemy is not installed", "pip install 'palio[postgresql]'")
    except Exception as problem:  # noqa: BLE001 - each database has its own errors
        reason = str(problem).strip().splitlines()[0]
        return Check(_HERE, "store", False, reason, "start the database, or correct --store")
    return Check(_HERE, "store", True, "answers")


def _aside_checks(url: str) -> Iterator[Check]:
    """What the store's broker could not read, and goes on without."""
    if url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).is_file():
        return
    try:
        from palio.store.aside import EVENT, listed  # noqa: PLC0415
    except ImportError:
        return
    for one in listed(url):
        found = f"the {one.what} {one.name!r} is aside: {one.reason}"
        advice = (
            "publish it again; palio journal verify looks for more" if one.what == EVENT else "make it anew"
        )
        yield Check(_HERE, "store", False, found, f"{advice}; what was kept of it is in the table palio_aside")


def _folder_check(folder: Path) -> Check:
    """Whether files can be written there, or where the folder would be made; and enough of them."""
    there = next(one for one in (folder, *folder.parents) if one.is_dir())
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as problem:
        advice = f"make {there} writable, or choose another folder"
        return Check(_HERE, "store", False, f"{there}: {problem.strerror or problem}", advice)
    free = shutil.disk_usage(there).free
    found = f"{folder}{'' if there == folder else ' (to be made)'}, {free / 2**30:,.0f} GB free"
    if free < _SPACE:
        return Check(_HERE, "store", False, found, "make room on that disk")
    return Check(_HERE, "store", True, found)


def _port_check(address: str) -> Check:
    host, _, port = address.rpartition(":")
    if not port.isdigit():
        raise typer.BadParameter(f"--listen takes HOST:PORT, not {address!r}.")
    name = f"port {port}"
    with socket.socket() as ours:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            ours.bind((host.strip("[]") or "127.0.0.1", int(port)))
        except OSError as problem:
            if _is_broker(host, port):
                return Check(_HERE, name, True, "a broker of Palio has it")
            advice = "end the program that has it, or choose another one"
            return Check(_HERE, name, False, os.strerror(problem.errno or 0), advice)
    return Check(_HERE, name, True, "free")


def _is_broker(host: str, port: str) -> bool:
    """Whether a broker answers there, to clients or by HTTP."""
    return any(_greets(f"{scheme}://{host}:{port}") for scheme in ("palio", "ws"))


def _greets(address: str) -> bool:
    async def greet() -> None:
        await (await connect(address, connect_timeout=_ANSWER_WITHIN, reconnect=False)).close()

    try:
        run(greet())
    except NotAuthenticated:
        return True
    except PalioError:
        return False
    return True


def _at_executors(
    checks: list[Check], master: str | None, remote: str | None, conf: list[str] | None
) -> list[Check]:
    if not all(one.well for one in checks if one.name in ("Java", "pyspark", "pandas", "pyarrow")):
        return [Check("executors", "not asked", False, "Spark cannot start here", "see above")]
    try:
        with opened(master, remote, conf, "doctor") as spark:
            return executor_checks(spark, _TASKS)
    except PalioError as problem:
        return [Check("executors", "not asked", False, str(problem), "correct --master or --remote")]
