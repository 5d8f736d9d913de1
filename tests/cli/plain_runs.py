"""One plain call of every command: it ends by itself, and goes as far as what it needs.

None of them meets a broker: who talks to one is told that there is none. `{folder}` is one of the test's own.
"""

from __future__ import annotations

from pathlib import Path

from palio.cli.spark.commands import JOBS

NOBODY = "127.0.0.1:1"  # no broker is there
STORE = "sqlite:///{folder}/none.db"
PLAIN: dict[str, tuple[str, ...]] = {
    "": (),
    "up": ("--listen", "192.0.2.1:0", "--http", "off", "--insecure", "--data", "{folder}/data"),
    "network": (),
    "network up": ("examples/network.toml",),
    "network status": ("examples/network.toml",),
    "token": (),
    "token create": ("desk", "--folder", "{folder}/access"),
    "token list": ("--folder", "{folder}/access"),
    "token revoke": ("nobody", "--folder", "{folder}/access"),
    "rights": (),
    "rights list": ("--folder", "{folder}/access"),
    "rights set": ("desk", "--publish", "true", "--folder", "{folder}/access"),
    "rights remove": ("desk", "--folder", "{folder}/access"),
    "rights test": ("desk", '{"price": 1}', "--folder", "{folder}/access"),
    "config": (),
    "config check": (),
    "config show": (),
    "config example": (),
    "context": (),
    "context add": ("here", NOBODY),
    "context use": ("here",),
    "context remove": ("here",),
    "context list": (),
    "pub": ("price=1",),
    "sub": ("price > 1",),
    "advertise": ("price > 1",),
    "request": ("ask=price",),
    "reply": ("ask = 1", "price=1"),
    "replay": ("--since", "all"),
    "backtest": ("price > 1", "--since", "all", "--store", STORE),
    "trace": ('{"price": 1}',),
    "explain": ("price > 1", '{"price": 2}'),
    "match": ("-f", "examples/filters.jsonl", "-e", "examples/events.jsonl"),
    "patterns": ("-p", "examples/patterns.jsonl", "-e", "examples/trades.jsonl"),
    "covers": ("x > 1", "x > 2"),
    "lint": ("examples/filters.jsonl",),
    "stats": (),
    "peers": (),
    "clients": (),
    "subs": (),
    "top": ("--count", "1"),
    "dlq": (),
    "dlq list": (),
    "dlq show": ("desk-7", "1"),
    "dlq requeue": ("desk-7", "1"),
    "dlq discard": ("desk-7", "1"),
    "forget": ("b1", "--yes"),
    "files": ("--in", "{folder}", "--once"),
    "family": (),
    "family add": ("card", "--key", "/card/@id"),
    "family ls": (),
    "family show": ("card",),
    "family paths": ("card",),
    "family change": ("card", "--path", "/card/price"),
    "family remove": ("card", "--yes"),
    "family register": ("card",),
    "family withdraw": ("card",),
    "family publishers": ("card",),
    "journal": (),
    "journal list": (),
    "journal trim": ("--store", STORE),
    "journal release": ("reader", "--yes", "--store", STORE),
    "journal verify": ("--store", STORE),
    "journal backup": ("{folder}/copy.db", "--store", STORE),
    "journal restore": ("{folder}/copy.db", "--store", STORE),
    "demo": ("--seconds", "0.1", "--filters", "5"),
    "sim": (),
    "sim run": ("siena", "--quick", "--output", "{folder}/sim"),
    "sim list": (),
    "sim replay": ('{"brokers": 2}',),
    "sim soak": ("--seeds", "1"),
    "spark": (),
    "spark archive": (STORE, "--lake", "{folder}/lake"),
    "spark backtest": ("price > 1", "{folder}/lake"),
    "spark documents": ("{folder}/lake", "--family", "card"),
    "spark forget": ("price > 1", "--lake", "{folder}/lake"),
    "spark match": ("-e", "examples/events.jsonl", "-f", "examples/filters.jsonl"),
    "spark experiments": ("siena", "--quick", "--output", "{folder}/sim-spark"),
    "spark package": ("--help",),
    "spark reach-back": ("price > 1", "--durable", "desk-7", "--lake", "{folder}/lake"),
    "spark patterns": ("{folder}/lake", "-p", "examples/patterns.jsonl"),
    "spark stats": ("examples/events.jsonl", "--output", "{folder}/report.html"),
    "bench": (),
    "bench filters": ("--help",),
    "bench matching": ("--help",),
    "bench hints": ("--help",),
    "bench reading": ("--help",),
    "bench poset": ("--help",),
    "bench routing": ("--help",),
    "bench store": ("--help",),
    "bench broker": ("--help",),
    "bench security": ("--help",),
    "bench neighbours": ("--help",),
    "bench spark": ("--help",),
    "bench patterns": ("--help",),
    "doctor": ("--no-executors", "--store", STORE),
}
# What starts brokers, Spark or a long simulation once all that it needs is there; other tests run these.
AT_WORK = {
    "network up": "broker",
    "demo": "broker",
    "sim run": "sim",
    **{f"spark {job}": "spark" for job in JOBS},
}


def words(command: str, folder: Path) -> list[str]:
    """The command with its arguments; one that is not known here without any."""
    filled = (one.replace("{folder}", str(folder)) for one in PLAIN.get(command, ()))
    return [*command.split(), *filled]
