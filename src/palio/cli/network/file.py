"""What a network file says: several brokers of one machine and their links, one by one or by a shape.

The brokers of a file are given addresses before any of them is started. A port that the file leaves open is
reserved by a socket that is bound and never listens: nobody else gets it, and the broker can still listen
there, also when it is started again.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from palio.broker.settings import Peer, Settings, WrongSetting, checked, read_file, split_address, told
from palio.protocol.addresses import SECURE_SCHEME
from palio.protocol.peers import LinkKind
from palio.routing.links import COUNTERPART
from palio.sim.scenario import Shape, Topology
from palio.sim.shapes import draw
from palio.sim.topologies import lay_out

MAX_BROKERS = 200
# How the links of a shape are used if the file does not say: as they are where there are cycles.
_WITH_CYCLES = frozenset({"ring", "grid", "hypercube", "graph", "scale-free", "transit-stub"})

Port = Annotated[int, msgspec.Meta(ge=0, le=65_535)]
Count = Annotated[int, msgspec.Meta(ge=1, le=MAX_BROKERS)]
AnyShape: TypeAlias = Shape | Literal["chain"]


class FileLink(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"source": "from", "target": "to"}
):
    """A link; `kind` is what the broker `to` is to the broker `from`."""

    source: str
    target: str
    kind: LinkKind = LinkKind.PEER
    cost: Annotated[float, msgspec.Meta(gt=0)] = 1.0


class NetworkFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The file as it is written. `settings` are those of all brokers; a broker's own ones win."""

    brokers: Count | dict[str, dict[str, Any]]
    links: tuple[FileLink, ...] | None = None
    shape: AnyShape | None = None
    topology: Topology | None = None
    seed: int = 1
    host: str = "127.0.0.1"
    first_port: Port = 0
    data: str = "palio-data"
    strategy: str | None = None
    advertisements: bool | None = None
    settings: dict[str, Any] = {}


class NetworkPlan(msgspec.Struct, frozen=True):
    """Brokers with their settings, and the links, each once."""

    brokers: dict[str, Settings]
    links: tuple[FileLink, ...]
    data: str

    @property
    def state_file(self) -> Path:
        """Where `network up` writes the ports and processes of its brokers."""
        return Path(self.data) / "network.json"


def read_network(path: str) -> NetworkPlan:
    """The network that a file describes. Raises `WrongSetting`."""
    return network_of(read_file(path), path)


def network_of(document: dict[str, Any], path: str) -> NetworkPlan:
    """The network that the content of a file describes. Raises `WrongSetting`."""
    try:
        file = msgspec.convert(document, NetworkFile)
    except msgspec.ValidationError as problem:
        place, reason = told(problem, NetworkFile)
        raise WrongSetting(place, path, reason) from None
    names = file.brokers if isinstance(file.brokers, dict) else _names(file.brokers)
    if not names:
        raise WrongSetting("$.brokers", path, "A network needs at least one broker.")
    common = {"http": "off"} | file.settings
    for key in ("strategy", "advertisements"):
        if getattr(file, key) is not None:
            common[key] = getattr(file, key)
    brokers = {}
    for number, (name, own) in enumerate(names.items()):
        place = f"brokers.{name}"
        port = own.get("port", file.first_port + number if file.first_port else 0)
        given = {"listen": f"{file.host}:{port}", "data": str(Path(file.data) / name)}
        given |= common | {key: value for key, value in own.items() if key != "port"} | {"name": name}
        if "peers" in given:
            raise WrongSetting(f"$.{place}.peers", path, "Here, brokers are linked by [[links]].")
        try:
            brokers[name] = checked(given, {}, path)
        except WrongSetting as problem:
            raise WrongSetting(problem.path.replace("$", f"$.{place}", 1), path, problem.reason) from None
    return NetworkPlan(brokers, _links(file, list(brokers), path), file.data)


def _names(count: int) -> dict[str, dict[str, Any]]:
    width = len(str(count))
    return {f"b{number:0{width}}": {} for number in range(1, count + 1)}


def _links(file: NetworkFile, names: list[str], path: str) -> tuple[FileLink, ...]:
    if file.links is None:
        return tuple(_drawn(file, names))
    if file.shape is not None:
        raise WrongSetting("$.links", path, "Name the links or a shape, not both.")
    seen: dict[frozenset[str], int] = {}
    for number, link in enumerate(file.links):
        for key, name in (("from", link.source), ("to", link.target)):
            if name not in names:
                reason = f"There is no broker {name!r}; there are {', '.join(names)}."
                raise WrongSetting(f"$.links[{number}].{key}", path, reason)
        if link.source == link.target:
            raise WrongSetting(f"$.links[{number}]", path, "A broker cannot be its own neighbour.")
        if (earlier := seen.setdefault(frozenset({link.source, link.target}), number)) != number:
            raise WrongSetting(f"$.links[{number}]", path, f"links[{earlier}] joins these two already.")
    return file.links


def _drawn(file: NetworkFile, names: list[str]) -> Iterable[FileLink]:
    shape: Shape = "line" if file.shape is None or file.shape == "chain" else file.shape
    topology: Topology = file.topology or ("graph" if shape in _WITH_CYCLES else "acyclic")
    chance = Random(file.seed)
    for link in lay_out(draw(shape, len(names), chance), topology, chance).links:
        yield FileLink(names[link.one], names[link.other], link.kind, link.cost)


def with_addresses(network: NetworkPlan) -> tuple[dict[str, Settings], list[socket.socket]]:
    """The brokers' settings with ports and neighbours, and the sockets that reserve the ports.

    Raises `OSError` for an address that cannot be had.
    """
    reserved: list[socket.socket] = []
    addresses: dict[str, str] = {}
    try:
        for name, settings in network.brokers.items():
            host, port = split_address(settings.listen)
            if port == 0:
                held = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
                reserved.append(held)
                held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                held.bind((host, 0))
                port = held.getsockname()[1]
            addresses[name] = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    except OSError:
        for one in reserved:
            one.close()
        raise
    peers: dict[str, list[Peer]] = {name: [] for name in addresses}
    for link in network.links:
        # The broker that comes first in the file is dialled: it is most likely up before the other.
        first = list(addresses).index(link.target) < list(addresses).index(link.source)
        dialling, dialled = (link.source, link.target) if first else (link.target, link.source)
        kind = link.kind if first else COUNTERPART[link.kind]
        scheme = SECURE_SCHEME if network.brokers[dialled].security.certificate else ""
        peers[dialling].append(Peer(scheme + addresses[dialled], kind, link.cost))
    return {
        name: msgspec.structs.replace(settings, listen=addresses[name], peers=tuple(peers[name]))
        for name, settings in network.brokers.items()
    }, reserved
