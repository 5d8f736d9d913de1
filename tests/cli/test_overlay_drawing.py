"""How a mesh is shown: a table of who is linked with whom, and how far away it is."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from palio.cli.network.overlay import _table


def row(name: str, **distances: float) -> dict:
    neighbours = [{"broker": one, "address": "x", "distance": away} for one, away in distances.items()]
    return {"name": name, "kind": "mesh", "address": f"10.0.0.{ord(name)}:1", "links": list(distances)} | {
        "neighbours": neighbours
    }


def test_a_mesh_is_a_table_with_the_nearest_first():
    rows = {"a": row("a", b=0.02, c=0.0015), "b": row("b", a=0.02, old=0.0), "c": row("c", a=0.0015)}
    rows["d"] = {"name": "d", "address": "x:1", "links": [], "neighbours": [], "problem": "It is away."}
    out = StringIO()
    Console(file=out, width=80, no_color=True).print(_table(rows))
    lines = [line.split(maxsplit=2) for line in out.getvalue().splitlines() if line.strip()]
    assert [line[0] for line in lines if line[0] in "abcd"] == ["a", "b", "c", "d"]
    told = {line[0]: line[2].strip() for line in lines if line[0] in "abcd"}
    assert told == {"a": "c 1.5 ms, b 20.0 ms", "b": "old, a 20.0 ms", "c": "a 1.5 ms", "d": "It is away."}
