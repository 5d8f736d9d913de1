"""Scenes: small scripts in which a crash is tried before and after every single effect."""

from __future__ import annotations

import msgspec

from palio.sim.faults.scenario import FaultScenario
from palio.sim.faults.steps import End, Join, Leave, Refilter, Say, Step, Take


def _say(time: float, *numbers: int) -> Say:
    contents = tuple((number, number % 2 + 1, number) for number in numbers)
    return Say(time=time, publisher="p0", contents=contents)


def _take(broker: str, filter: str = "n > 0", name: str = "s0") -> Take:
    return Take(time=0.0, name=name, broker=broker, filter=filter)


SCENES: dict[str, tuple[Step, ...]] = {
    "one": (_take("b0"), _say(0.5, 1), _say(0.503, 2, 3), _say(1.2, 4)),
    "two": (_take("b1"), _say(0.6, 1), _say(0.603, 2, 3), _say(1.2, 4), _say(1.9, 5)),
    "three": (_take("b2"), _say(0.7, 1), _say(0.703, 2, 3), _say(1.3, 4), _say(2.0, 5)),
    "ring": (_take("b1"), _say(0.7, 1), _say(0.703, 2, 3), _say(1.3, 4), _say(2.0, 5)),
    "move": (
        _take("b1"), _say(0.7, 1), _say(0.9, 2, 3),
        Leave(time=0.91, name="s0", manner="moves", seconds=0.0, broker="b0"), _say(0.92, 4), _say(1.5, 5),
        Leave(time=1.6, name="s0", manner="closes", seconds=0.0, broker="b1"), _say(1.61, 6), _say(2.2, 7),
    ),
    "change": (
        _take("b1", "kind = 1"), _say(0.7, 1), _say(0.9, 2, 3),
        Refilter(time=0.91, name="s0", filter="kind = 2"), _say(0.92, 4, 5), _say(1.2, 6), _say(2.2, 7),
    ),
    "join": (
        _take("b2"), _take("b1", name="s1"), Join(time=0.7, broker="b0"),
        _say(1.2, 1), _say(1.9, 2, 3), _say(3.5, 4),
    ),
    "end": (_take("b1"), _say(0.7, 1), _say(0.9, 2, 3), End(time=0.95, name="s0"), _say(1.2, 4)),
    "relay": (_take("b1"), _say(0.6, 1), _say(0.603, 2, 3), _say(1.2, 4), _say(1.9, 5)),
    "join by a relay": (
        _take("b2"), _take("b1", name="s1"), Join(time=0.7, broker="b0"),
        _say(1.2, 1), _say(1.9, 2, 3), _say(3.5, 4),
    ),
}  # fmt: skip
SMALLEST = "one"


def scene(name: str) -> FaultScenario:
    brokers = {"one": 1, "two": 2, "move": 2, "change": 2, "end": 2, "relay": 2}.get(name, 3)
    found = FaultScenario(scene=name, shape="line", brokers=brokers, takers=1, publishers=1)
    if "relay" in name:  # between b0 and the others, by this seed
        return msgspec.structs.replace(found, seed=2, relays=1)
    return msgspec.structs.replace(found, shape="ring", topology="graph") if name == "ring" else found
