"""The settings of a broker: a file (`palio.toml`), then the environment, then flags; the later ones win.

Everything has a default: a broker without any settings listens on the loopback interface of this machine only,
and keeps what it has to keep in `./palio-data`. What is wrong is said with its path and its origin.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import tomllib
from collections.abc import Mapping
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
import msgspec.inspect

from palio.broker.documents.settings import DocumentSettings
from palio.broker.gateway.settings import GatewaySettings
from palio.broker.limits import MAX_NAME
from palio.broker.operations import OperationSettings
from palio.broker.soap.settings import SoapSettings
from palio.language import PALIO, read_filter
from palio.matching.hints import Hints
from palio.model.amounts import LARGEST, Positive, Rate, Seconds, SecondsOrNone
from palio.model.errors import FilterError, PalioError, UnreadableHints
from palio.model.filter import Filter
from palio.model.reading import MAX_TEXT_CHARACTERS
from palio.model.values import MAX_ATTRIBUTES
from palio.protocol.addresses import DEFAULT_PORT
from palio.protocol.addresses import split_address as split_address  # noqa: PLC0414 (it is looked for here)
from palio.protocol.durable.wishes import wrong_in_patience
from palio.protocol.frames import MAX_FRAME
from palio.protocol.heartbeat import HEARTBEAT
from palio.protocol.peers import LinkKind
from palio.routing.configuration import Strategy
from palio.routing.durable.desk import DurableSettings
from palio.routing.overlay.names import is_name, read_name
from palio.routing.overlay.settings import OverlayKind, OverlaySettings, Passable
from palio.routing.reconfiguration.settings import Protocol, ReconfigurationSettings

DEFAULT_FILE = "palio.toml"
PREFIX = "PALIO_"
DEFAULT_HTTP_PORT = 7080

# Flags that are not named after their settings.
_FLAGS = {"peers": "--peer", "journal": "--no-journal", "security": "--authentication or another one"}
# Tables of which one word says the most: which key that is, and the words.
_SHORT = {"overlay": ("kind", get_args(OverlayKind)), "reconfiguration": ("protocol", get_args(Protocol))}
# Settings that are one of a few words.
_WORDS = ("sync", "strategy", "when_slow", "log_level", "log_format")

WhenSlow = Literal["drop-newest", "drop-oldest", "disconnect"]


class WrongSetting(PalioError):
    """A setting that cannot be used; `path` says which, `origin` where it was given."""

    path: str
    origin: str
    reason: str
    sentence = "{origin}: {path}: {reason}"


class Peer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A broker to connect to, and what it shall be to this one."""

    address: str  # with palios:// the link speaks TLS, with quic:// it goes over UDP
    kind: LinkKind = LinkKind.PEER
    cost: Annotated[float, msgspec.Meta(gt=0, le=LARGEST)] = 1.0
    token_file: str = ""  # if it is another one than that of `security`
    authority: str = ""  # who signs the other's certificate; by default that of `security`, or of the system
    export: str = "true"  # a filter: of all events, those that may leave by this link
    dialect: str = PALIO  # what this filter is written in

    @property
    def exported(self) -> Filter:
        """What may leave by this link. Raises `FilterError`s."""
        return read_filter(self.export, self.dialect)


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What nobody may exceed. `outgoing` is what waits for one slow client before `when_slow` applies."""

    frame: Positive = MAX_FRAME
    connections: Positive = 10_000
    connections_per_address: Positive = 10_000  # of one machine
    connections_per_principal: Positive = 10_000
    subscriptions: Positive = 200_000  # of one client
    attributes: Annotated[int, msgspec.Meta(ge=1, le=MAX_ATTRIBUTES)] = MAX_ATTRIBUTES  # of one notification
    filter: Positive = MAX_TEXT_CHARACTERS  # characters of one filter
    publish_rate: Rate = 0.0  # notifications a second and client; 0: any number
    outgoing: Positive = 16 * 1024 * 1024
    held: Positive = 64 * 1024 * 1024  # bytes under way for one principal: not finished, not read
    held_in_all: Positive = 512 * 1024 * 1024  # and for all
    kept: Positive = 1024 * 1024 * 1024  # bytes of memory for the subscriptions of one principal
    kept_in_all: Positive = 2 * 1024 * 1024 * 1024  # and of all
    link: Positive = 256 * 1024 * 1024  # what waits for a neighbour before the link is taken for dead
    unwritten: Positive = 64 * 1024 * 1024  # what waits for the disk before publishers have to wait
    greeting: Seconds = 10.0  # seconds until a new connection must have greeted
    steps: Positive = (
        5_000_000  # of reasoning about filters for one request, each about a tenth of a microsecond
    )
    patience: Seconds = 10.0  # seconds that a request which takes reasoning waits for its turn

    def peer_frame(self, durable: DurableSettings) -> int:
        """What is read of a neighbour in one frame: a subscription is handed over with all that it has."""
        return max(self.link, durable.outbox_bytes + durable.dead_letters_bytes + 4 * MAX_FRAME)


class Security(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who may come in, and how what they say is protected on its way. Files are named by their paths.

    With a `certificate`, the ports speak TLS. An `authority` signs the certificates by which clients and
    brokers may show who they are, instead of by a token; and those of the brokers that this one links with. To
    them it shows its own certificate, and the token of `token_file`.
    """

    authentication: bool = False
    folder: str = ""  # where tokens and rights are; by default `access` in the data folder
    when_wider: Literal["narrow", "refuse"] = "narrow"  # of a subscription for more than one may see
    insecure: bool = False  # listen beyond this machine without authentication
    certificate: str = ""
    key: str = ""
    authority: str = ""
    token_file: str = ""


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How one broker runs. The defaults are those of `palio up`."""

    name: str = ""
    listen: str = f"127.0.0.1:{DEFAULT_PORT}"
    http: str = f"127.0.0.1:{DEFAULT_HTTP_PORT}"  # "off": none
    quic: str = "off"  # a UDP port for `quic://`, beside TCP; it needs a certificate
    data: str = "palio-data"
    store: str = ""  # a URL; by default SQLite in the data folder
    journal: bool = True  # without it nothing is durable, and what is confirmed was taken and no more
    relay: bool = False  # keep nothing, and pass on what the others of the network keep in their journals
    lake: str = ""  # the folder to which the journal is archived: what was trimmed is read there
    keep: SecondsOrNone = 7 * 86_400.0  # seconds that what was published is kept
    sync: Literal["full", "normal", "off"] = "full"
    strategy: Strategy = Strategy.COVERING
    advertisements: bool = False
    merging_excess: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.0
    hints: str = ""  # a file that says how frequent values are, for the index
    peers: tuple[Peer, ...] = ()
    overlay: OverlaySettings = OverlaySettings()
    reconfiguration: ReconfigurationSettings = ReconfigurationSettings()
    heartbeat: Seconds = HEARTBEAT
    when_slow: WhenSlow = "drop-newest"
    limits: Limits = Limits()
    security: Security = Security()
    durable: DurableSettings = DurableSettings()
    gateway: GatewaySettings = GatewaySettings()
    soap: SoapSettings = SoapSettings()
    operations: OperationSettings = OperationSettings()
    documents: DocumentSettings = DocumentSettings()
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["text", "json"] = "text"

    @property
    def ports(self) -> list[tuple[str, str, str]]:
        """Where it listens: each setting, its flag, and what it says."""
        optional = [("http", "--http", self.http), ("quic", "--quic", self.quic)]
        return [("listen", "--listen", self.listen), *[one for one in optional if one[2] != "off"]]

    def __post_init__(self) -> None:
        if self.relay:
            msgspec.structs.force_setattr(self, "journal", False)

    @property
    def store_url(self) -> str:
        """Where the journal is."""
        return self.store or f"sqlite:///{Path(self.data) / 'palio.db'}"

    @property
    def access_folder(self) -> Path:
        """Where tokens and rights are."""
        return Path(self.security.folder or Path(self.data) / "access")

    @property
    def delivery(self) -> DurableSettings | None:
        """How durable delivery works, if there is any."""
        return (
            msgspec.structs.replace(self.durable, keep=self.durable.keep or self.keep) if self.journal else None
        )

    def named(self) -> Settings:
        """With a name: the one given, that of what is kept in the data folder, or one of machine and port.

        Where any free port will do, several such brokers may run beside each other: chance tells them apart.
        """
        if self.name:
            return self
        if self.journal and self._name_file.exists():
            return msgspec.structs.replace(self, name=self._name_file.read_text().strip())
        port = split_address(self.listen)[1]
        name = f"{socket.gethostname()}-{port or secrets.token_hex(4)}"
        return msgspec.structs.replace(self, name=name)

    def keep_name(self) -> None:
        """The store is this broker's now: whoever opens it later, at whichever port, is the same broker.

        Not before: a start that fails keeps nothing, and the next one is named by its own port.
        """
        if not self._name_file.exists():
            self._name_file.write_text(self.name + "\n")

    @property
    def _name_file(self) -> Path:
        return Path(self.data) / "name"


class Gathered(msgspec.Struct, frozen=True):
    """What was said about settings, before anybody has looked whether it is right; and who said it.

    A table of which parts were said in several places has an origin for each of these parts (`limits.frame`).
    """

    values: dict[str, Any]
    origins: dict[str, str]
    file: str

    def add(self, key: str, value: Any, origin: str) -> None:
        """Something that is said later, and so wins; of a table, only what it says is replaced."""
        if key in _SHORT and isinstance(value, str):
            value = {_SHORT[key][0]: value}
        known = self.values.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            self.values[key] = known | value
            self.origins.update({f"{key}.{part}": origin for part in value})
        else:
            self.values[key] = value
            self.origins[key] = origin


def load(
    path: str | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> Settings:
    """The settings of a broker. Without a path, `palio.toml` is read if there is one. Raises `WrongSetting`."""
    gathered = gather(path, environment=environment, flags=flags)
    return checked(gathered.values, gathered.origins, gathered.file)


def gather(
    path: str | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> Gathered:
    """What `load` checks. Raises `WrongSetting` for what cannot be read at all."""
    gathered = Gathered({}, {}, path if path is not None else DEFAULT_FILE)
    if path is not None or Path(gathered.file).exists():
        for key, value in read_file(gathered.file).items():
            gathered.add(key, value, gathered.file)
    for name, text in (os.environ if environment is None else environment).items():
        key = name.removeprefix(PREFIX).lower()
        if name.startswith(PREFIX) and key in Settings.__struct_fields__:
            gathered.add(key, _from_text(key, text, name), f"The environment variable {name}")
    for key, value in (flags or {}).items():
        if value is not None:
            gathered.add(key, value, f"The flag {_FLAGS.get(key, '--' + key.replace('_', '-'))}")
    return gathered


def read_file(path: str) -> dict[str, Any]:
    """What a settings file says. Raises `WrongSetting`."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as problem:
        reason = f"This file cannot be read: {problem.strerror}."
    except UnicodeDecodeError:
        reason = "This file is not UTF-8."
    except tomllib.TOMLDecodeError as problem:
        reason = f"This is not TOML: {problem}."
    raise WrongSetting("$", path, reason) from None


def checked(given: Mapping[str, Any], origins: Mapping[str, str], file: str) -> Settings:
    """Settings from plain data. Raises `WrongSetting`."""
    try:
        settings = msgspec.convert(given, Settings)
    except msgspec.ValidationError as problem:
        path, reason = told(problem, Settings)
        named = f"{path}.{unknown[1]}" if (unknown := UNKNOWN.fullmatch(reason)) else path
        raise WrongSetting(path, _origin(named, origins, file), reason) from None
    if len(settings.name) > MAX_NAME:
        reason = f"A name has at most {MAX_NAME} characters; this one has {len(settings.name):,}."
        raise WrongSetting("$.name", origins.get("name", file), reason)
    if wrong := wrong_in_patience(settings.durable.patience):
        path = f"$.durable.patience.{wrong[0]}"
        raise WrongSetting(path, _origin(path, origins, file), wrong[1])
    for number, peer in enumerate(settings.peers):
        try:
            peer.exported.require_sets("An export")
        except FilterError as problem:
            raise WrongSetting(f"$.peers[{number}].export", origins.get("peers", file), str(problem)) from None
    if settings.relay:
        for key in ("journal", "store", "lake"):
            if given.get(key):
                reason = f"A relay keeps nothing: leave out `{key}`, or let the broker be none."
                raise WrongSetting(f"$.{key}", origins.get(key, file), reason)
    addresses = {path: address for path, _, address in settings.ports}
    if settings.overlay.address:
        addresses["overlay.address"] = settings.overlay.address
    addresses |= {f"overlay.join[{number}]": join for number, join in enumerate(settings.overlay.join)}
    addresses |= {f"peers[{number}].address": peer.address for number, peer in enumerate(settings.peers)}
    for path, address in addresses.items():
        try:
            if path.startswith("overlay.join") and is_name(address):
                read_name(address)
            else:
                split_address(address)
        except ValueError as problem:
            raise WrongSetting(f"$.{path}", _origin(path, origins, file), str(problem)) from None
    if settings.overlay.address:
        try:
            ip_address(split_address(settings.overlay.address)[0])
        except ValueError:
            reason = (
                "Others may resolve a name to somebody else; write an address of this machine, as 10.0.0.7."
            )
            raise WrongSetting("$.overlay.address", _origin("overlay.address", origins, file), reason) from None
    try:
        Passable(settings.overlay.networks)
    except ValueError as problem:
        reason = f"{problem}; write networks such as 10.0.0.0/8."
        raise WrongSetting("$.overlay.networks", _origin("overlay.networks", origins, file), reason) from None
    return settings


def _origin(path: str, origins: Mapping[str, str], file: str) -> str:
    """Who said what is wrong at a path."""
    top, *parts = re.findall(r"[^.\[\]$]+", path) or [""]
    return origins.get(f"{top}.{parts[0]}" if parts else top) or origins.get(top, file)


LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def require_here(settings: Settings) -> None:
    """Raises `WrongSetting` for an address to listen at that names no host at all."""
    for path, flag, address in settings.ports:
        host, port = split_address(address)
        reason = ""
        if host.isascii() and host.isdigit():
            reason = f"{address} is a port, and no host; write {flag} 127.0.0.1:{host} for this machine alone."
        elif host not in LOOPBACK:
            try:
                socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            except (OSError, UnicodeError):
                reason = (
                    f"{host} is no address of this machine, nor the name of one. Write HOST:PORT, such as "
                    f"{flag} 127.0.0.1:{port} for this machine alone, or 0.0.0.0:{port} for all others, too."
                )
        if reason:
            raise WrongSetting(f"$.{path}", "The settings", reason)


def require_safe(settings: Settings) -> None:
    """Raises `WrongSetting` for a broker that would let in everyone who can reach this machine."""
    require_here(settings)
    require_kept(settings)
    security = settings.security
    if settings.quic != "off" and not security.certificate:
        reason = "QUIC has TLS in it: give the broker a certificate (--certificate), or turn it off."
        raise WrongSetting("$.quic", "The settings", reason)
    if security.authentication or security.insecure:
        return
    for path, flag, address in settings.ports:
        if split_address(address)[0] not in LOOPBACK:
            raise WrongSetting(
                f"$.{path}",
                "The settings",
                f"{address} can be reached from other machines, and nobody has to say who they are. Turn on "
                "authentication (--authentication, and `palio token create`), keep to this machine "
                f"({flag} 127.0.0.1:PORT), or say --insecure.",
            )


def require_kept(settings: Settings) -> None:
    """Raises `WrongSetting` for documents that are to be kept, and cannot be."""
    documents = settings.documents
    for place, stage in enumerate(documents.stages):
        if not stage.waits:
            where = f"$.documents.stages[{place}].waits"
            if not settings.journal:
                said = "Documents wait on disk for such a stage; only a broker with a journal has one."
                raise WrongSetting(where, "The settings", said)
            if settings.advertisements:
                said = "Who publishes may be gone by then, and with it what it advertised (`advertisements`)."
                raise WrongSetting(where, "The settings", said)
    if not documents.keep:
        return
    try:
        read_filter(documents.keep, documents.dialect).require_satisfiable()
    except PalioError as problem:
        raise WrongSetting("$.documents.keep", "The settings", str(problem)) from None
    if not settings.journal:
        raise WrongSetting("$.documents.keep", "The settings", "Only a broker with a journal keeps documents.")


def require_files(settings: Settings) -> None:
    """Raises `WrongSetting` for a file of `security` that is not there, and for hints that cannot be used."""
    if settings.hints:
        try:
            Hints.load(settings.hints)
        except UnreadableHints as problem:
            raise WrongSetting("$.hints", "The settings", str(problem)) from None
    for key in ("certificate", "key", "authority", "token_file"):
        file = getattr(settings.security, key)
        if file and not Path(file).is_file():
            raise WrongSetting(f"$.security.{key}", "The settings", f"There is no file {file}.")
    if settings.security.key and not settings.security.certificate:
        raise WrongSetting("$.security.key", "The settings", "A key is of no use without its certificate.")


# What is said of a setting that there is none of.
UNKNOWN = re.compile(r"There is no setting '(.+)'\.")


def told(problem: msgspec.ValidationError, kind: type) -> tuple[str, str]:
    """Where settings of some kind are wrong, and a sentence that says how."""
    reason, _, path = str(problem).partition(" - at `")
    path = path.rstrip("`") or "$"
    if unknown := re.fullmatch(r"Object contains unknown field `(.+)`", reason):
        return path, f"There is no setting '{unknown[1]}'."
    if choices := _choices(path, kind):
        return path, f"{reason}; there are {', '.join(choices)}."
    return path, f"{reason}."


_type_info = cache(msgspec.inspect.type_info)


def _choices(path: str, kind: type) -> tuple[str, ...]:
    """The words that a setting may be, if it is one of a few."""
    known: Any = _type_info(kind)
    for key in re.findall(r"[^.\[\]$]+", path):
        known = getattr(known, "type", known)  # what is within a restriction
        if isinstance(known, msgspec.inspect.StructType):
            known = next((one.type for one in known.fields if one.encode_name == key), None)
        else:
            known = getattr(known, "item_type", getattr(known, "value_type", None))
    if isinstance(known, msgspec.inspect.EnumType):
        return tuple([str(one.value) for one in known.cls])
    return tuple(map(str, known.values)) if isinstance(known, msgspec.inspect.LiteralType) else ()


def _from_text(key: str, text: str, name: str) -> Any:
    """The value of an environment variable: TOML if the setting is no text, so that numbers can be said."""
    if Settings.__annotations__[key] == "str" or key in _WORDS:
        return text
    if key in _SHORT and text in _SHORT[key][1]:
        return text
    if key == "peers":
        return [{"address": one.strip()} for one in text.split(",") if one.strip()]
    try:
        found = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        found = {}
    if found.keys() != {"value"}:
        reason = f"{text!r} cannot be read; write it as in a file, such as 2.5, true or {{frame = 1024}}."
        raise WrongSetting(f"$.{key}", f"The environment variable {name}", reason)
    return found["value"]
