"""`palio up`: one broker, in the foreground."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from rich.text import Text

from palio.broker.memory import memory_bound, memory_of_machine
from palio.broker.settings import DEFAULT_FILE, LOOPBACK, Settings, load, split_address
from palio.cli.brokers.hosting import CannotStart, host
from palio.cli.program.dressing import flag, option
from palio.cli.program.terminal import error_console, help_epilog
from palio.model.amounts import size_text
from palio.protocol.addresses import DEFAULT_PORT
from palio.protocol.peers import LinkKind

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer

EPILOG = help_epilog(
    "palio up",
    "palio up --config examples/palio.toml",
    "palio up --listen 127.0.0.1:7171 --http off --data b --peer 127.0.0.1",
    "palio up --overlay tree",
    "palio up --listen 127.0.0.1:7171 --http off --data c --join 127.0.0.1:7070",
    "palio up --lake palio-lake",
    "palio up --soap",
    "palio up --standby --listen 127.0.0.1:7171 --http off",
)
_KINDS = frozenset(kind.value for kind in LinkKind)


def up(
    *,
    config: Annotated[
        str | None, option("FILE", f"Settings; {DEFAULT_FILE} is read if it is there.", "--config", "-c")
    ] = None,
    name: Annotated[str | None, option("NAME", "The broker's name in the network, the same for ever.")] = None,
    listen: Annotated[
        str | None, option("HOST:PORT", "For clients and brokers; 127.0.0.1:7070, port 0: any.")
    ] = None,
    http: Annotated[
        str | None, option("HOST:PORT", "For HTTP: events, health, metrics; 127.0.0.1:7080, or off.")
    ] = None,
    quic: Annotated[
        str | None, option("HOST:PORT", "For quic:// beside TCP, by UDP; off. It needs a certificate.")
    ] = None,
    data: Annotated[str | None, option("FOLDER", "What is kept is kept here; ./palio-data.")] = None,
    store: Annotated[str | None, option("URL", "The journal, if not SQLite in the data folder.")] = None,
    lake: Annotated[
        str | None, option("FOLDER", "Where the journal is archived: history goes on there.")
    ] = None,
    no_journal: Annotated[bool, flag("--no-journal", "Keep nothing: quick, and nothing is durable.")] = False,
    relay: Annotated[
        bool, flag("--relay", "Keep nothing, in a network whose other brokers do: pass on, and no more.")
    ] = False,
    sync: Annotated[
        str | None, option("HOW", "When a confirmed event is on disk: full, normal or off.")
    ] = None,
    peer: Annotated[
        list[str] | None,
        option("[KIND=]HOST:PORT", "A broker to link with: a peer, master, below or graph. Repeatable."),
    ] = None,
    join: Annotated[
        list[str] | None,
        option(
            "ADDRESS[,ADDRESS]",
            "Join the network of one of these brokers; links are found by themselves. dns://NAME:PORT is all "
            "brokers at a name.",
        ),
    ] = None,
    overlay: Annotated[
        str | None, option("KIND", "fixed: links are those of --peer. tree, mesh: brokers find each other.")
    ] = None,
    reconfiguration: Annotated[
        str | None,
        option("PROTOCOL", "When a lost link's rows go: strawman (at once), deferred, notified, informed."),
    ] = None,
    strategy: Annotated[
        str | None, option("NAME", "How interest spreads: covering, merging, identity, simple, flooding.")
    ] = None,
    advertisements: Annotated[
        bool | None, flag("--advertisements/--no-advertisements", "Only what is advertised may be published.")
    ] = None,
    hints: Annotated[str | None, option("FILE", "Of palio spark stats: how frequent values are.")] = None,
    log_level: Annotated[str | None, option("LEVEL", "debug, info, warning or error.")] = None,
    log_format: Annotated[str | None, option("FORMAT", "text or json.")] = None,
    authentication: Annotated[
        bool | None, flag("--authentication/--no-authentication", "Let in only who shows who they are.")
    ] = None,
    certificate: Annotated[str | None, option("FILE", "Speak TLS, with this certificate (PEM).")] = None,
    key: Annotated[str | None, option("FILE", "The key of the certificate.")] = None,
    authority: Annotated[
        str | None, option("FILE", "Who signs the certificates of clients and neighbours.")
    ] = None,
    soap: Annotated[
        bool | None, flag("--soap/--no-soap", "Speak SOAP on the HTTP port: WS-Notification, ONVIF events.")
    ] = None,
    standby: Annotated[
        bool, flag("--standby", "Wait until the broker of this name and store ends, and take its place.")
    ] = False,
    insecure: Annotated[bool, flag("--insecure", "Listen beyond this machine without authentication.")] = False,
    ready_file: Annotated[
        Path | None,
        option(
            "FILE",
            "Written when the broker is up: name, ports and process id, as JSON.",
            "--ready-file",
            "--port-file",
        ),
    ] = None,
) -> None:
    """Start a broker, and run it until Ctrl-C.

    Without any settings it listens on this machine only: 127.0.0.1:7070 for
    clients and other brokers, 127.0.0.1:7080 for everything over HTTP.
    What it keeps is in ./palio-data.

    A settings file is overridden by the environment (PALIO_LISTEN, PALIO_DATA
    and so on), and that by flags; palio config check shows what is in force.

    With --standby it listens nowhere until the broker that has its store has
    ended, however that came; then it is that broker, at its own address.
    """
    flags = {
        "name": name,
        "listen": listen,
        "http": http,
        "quic": quic,
        "data": data,
        "store": store,
        "lake": lake,
        "journal": False if no_journal else None,
        "relay": relay or None,
        "sync": sync,
        "peers": [_peer(one) for one in peer] if peer else None,
        "overlay": _given(kind=overlay, join=_addresses(join)),
        "reconfiguration": reconfiguration,
        "strategy": strategy,
        "advertisements": advertisements,
        "hints": hints,
        "log_level": log_level,
        "log_format": log_format,
        "security": _given(
            authentication=authentication,
            certificate=certificate,
            key=key,
            authority=authority,
            insecure=insecure or None,
        ),
        "soap": _given(enabled=soap),
    }
    settings = load(config, flags=flags)
    if ready_file is not None:
        ready_file.unlink(missing_ok=True)  # one of the last time would tell of a broker that is not there

    def started(broker: BrokerServer) -> None:
        _announce(error_console(), broker)
        if ready_file is not None:
            write_ports(ready_file, broker)

    try:
        host(settings, started, standby=standby)
    finally:
        if ready_file is not None:
            ready_file.unlink(missing_ok=True)


def _given(**flags: Any) -> dict[str, Any] | None:
    return {name: value for name, value in flags.items() if value is not None} or None


def _addresses(texts: list[str] | None) -> list[str] | None:
    return [one.strip() for text in texts for one in text.split(",") if one.strip()] if texts else None


def _peer(text: str) -> dict[str, Any]:
    kind, equals, address = text.partition("=")
    return {"kind": kind, "address": address} if equals else {"address": text}


def ports(broker: BrokerServer) -> dict[str, Any]:
    """Where a broker listens, as plain data."""
    settings = broker.settings
    return {
        "name": settings.name,
        "server": f"{split_address(settings.listen)[0]}:{broker.port}",
        "port": broker.port,
        "http_port": broker.http_port or None,
        "quic_port": broker.quic_port or None,
        "pid": os.getpid(),
    }


def write_ports(file: Path, broker: BrokerServer) -> None:
    """Write them so that whoever finds the file finds all of it."""
    new = file.with_name(f"{file.name}.new")
    try:
        new.write_text(json.dumps(ports(broker)) + "\n")
        new.replace(file)
    except OSError as problem:
        raise CannotStart(
            f"The ready file {file} cannot be written: {problem.strerror or problem}. Choose another place."
        ) from None


def _memory(broker: BrokerServer) -> Text:
    """What the broker may need at the most, and whether the machine has it."""
    parts = memory_bound(broker.settings, max(1, len(broker.access.principals())))
    most = sum(part.bytes for part in parts)
    text = Text(f"at most {size_text(most)}, as its limits say").append("  (palio config check)", style="dim")
    there = memory_of_machine()
    if most > there:
        largest = max(parts, key=lambda part: part.bytes if part.settings else 0)
        text.append(
            f"\n           This machine has {size_text(there)}: lower {largest.settings}.", style="yellow"
        )
    return text


def _announce(console: Console, broker: BrokerServer) -> None:
    settings = broker.settings
    server = ports(broker)["server"]
    block = Text("The broker ").append(settings.name, style="bold").append(" is up.\n", style="bold green")
    security = settings.security
    scheme = "palios" if security.certificate else "palio"
    block.append(f"  clients  {scheme}://{server}  ").append(_who(settings, settings.listen), style="dim")
    if broker.quic_port:
        host = split_address(settings.quic)[0]
        block.append(f"\n  QUIC     quic://{host}:{broker.quic_port}")
        block.append(f"  {_who(settings, settings.quic).removesuffix(' or a certificate')}", style="dim")
    if broker.http_port:
        address = f"{split_address(settings.http)[0]}:{broker.http_port}"
        web = "https" if security.certificate else "http"
        block.append(f"\n  HTTP     {web}://{address}/docs")
        if split_address(settings.http)[0] not in LOOPBACK:
            block.append(f"  {_who(settings, settings.http)}", style="dim")
    block.append(f"\n  data     {_data(settings)}\n  memory   ").append(_memory(broker))
    named = f" --server {scheme}://{server}" if security.certificate else f" --server {server}"
    options = "" if broker.port == DEFAULT_PORT and not security.certificate else named
    call = "curl -N"
    if security.certificate:
        authority = shlex.quote(security.authority or "AUTHORITY.pem")
        options += f" --authority {authority}"
        call += f" --cacert {authority}"
    if security.authentication:
        options += " --token-file FILE"
        call += ' -H "Authorization: Bearer $(cat FILE)"'
        folder = shlex.quote(str(settings.access_folder))
        block.append(f"\nA token for somebody: palio token create NAME --folder {folder} --output FILE")
    block.append("\nIn another terminal:")
    block.append(f"\n  palio sub{options} 'price > 100'", style="cyan")
    if not settings.relay:  # which refuses it
        block.append(f"\n  palio pub{options} symbol=ACME price=101.5", style="cyan")
    if broker.http_port:
        block.append(f"\n  {call} '{web}://{address}/events?filter=price>100'", style="cyan")
    console.print(block.append("\nCtrl-C stops it."), soft_wrap=True)


def _who(settings: Settings, address: str) -> str:
    security, here = settings.security, split_address(address)[0] in LOOPBACK
    if not security.authentication:
        return "this machine only" if here else "open to everyone who can reach this address (--insecure)"
    if not security.certificate and not here:
        return "with a token; without TLS (--certificate) others may listen in"
    return "with a token" + (" or a certificate" if security.authority else "")


def _data(settings: Settings) -> str:
    if settings.relay:
        return "none: a relay passes on what the others keep"
    if not settings.journal:
        return "none: nothing is kept, and nothing is durable"
    where = settings.store_url.split("@")[-1] if settings.store else settings.data
    promise = "is on disk" if settings.sync == "full" else "may be lost if the machine fails"
    before = f"; before that {settings.lake}" if settings.lake else ""
    return f"{where} (what is confirmed {promise}{before})"
