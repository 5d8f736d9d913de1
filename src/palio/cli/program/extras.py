"""What an extra brings: every command works, or says in a sentence which one has to be installed.

Commands import what they need where they need it, and leave it to one place, the group that has called them
(`loading`), to tell what is missing. The table has packages by the names under which they are imported; a test
compares it with pyproject.toml.
"""

from __future__ import annotations

from importlib.util import find_spec

from palio.model.errors import MissingDependency

_ARROW = frozenset({"pyarrow"})
_WEBSOCKET = frozenset({"websockets"})
_BROKER = _WEBSOCKET | {"aiohttp", "greenlet", "h11", "prometheus_client", "sqlalchemy", "starlette"}
_BROKER |= {"uvicorn", "uvloop"}
_SPARK = _ARROW | {"google", "numpy", "packaging", "pandas", "py4j", "pyspark", "sqlalchemy"}
# The first that brings a package is the one that is told, unless the command is known to need another one.
BRINGS = {
    "arrow": _ARROW,
    "websocket": _WEBSOCKET,
    "broker": _BROKER,
    "postgresql": _BROKER | {"psycopg"},
    "quic": frozenset({"aioquic", "cryptography"}),
    "sim": _ARROW | {"matplotlib", "numpy"},
    "spark": _SPARK,
    "connect": _SPARK | {"grpc", "grpc_status"},
    "xml": frozenset({"lxml"}),
    "bench": _ARROW | _BROKER | {"nats", "numpy", "paho", "trustme"},
}


def missing_of(extra: str) -> MissingDependency | None:
    """What is not installed of an extra, as an error that could be raised; None if all of it is there."""
    for package in sorted(BRINGS[extra]):
        if find_spec(package) is None:
            return MissingDependency(package, extra)
    return None


def told(problem: ModuleNotFoundError | MissingDependency, needed: str) -> MissingDependency | None:
    """A missing package as a sentence; None if no extra brings it, and so it is a mistake of ours.

    `needed` is the extra that the command is known to need, empty if none: whoever types `palio spark …` needs
    Spark as a whole, not only the first package of it that was not there.
    """
    if isinstance(problem, MissingDependency):
        package, extra = problem.package, problem.extra
    else:
        package = (problem.name or "").split(".")[0]
        extra = next((extra for extra, packages in BRINGS.items() if package in packages), "")
    if needed and package in BRINGS[needed] and not BRINGS[extra] > BRINGS[needed]:
        extra = needed
    return MissingDependency(package, extra) if extra else None
