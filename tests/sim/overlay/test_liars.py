"""One broker of a network lies: the others stay connected and calm, and are as ever when it has gone."""

from __future__ import annotations

from itertools import count

import msgspec
import pytest

from palio.protocol.overlay import Contact, Nearby, Suggest
from palio.protocol.peers import Component, Goodbye, Hello, Joined
from palio.routing.effects import Send
from palio.routing.router import Router
from palio.sim.overlay.oracle import at_rest, parts
from palio.sim.overlay.script import OverlayScenario
from palio.sim.overlay.world import OverlayWorld

LIAR, VICTIM = "b4", "b2"
BROKERS = 10
# In the seconds of a lie, of all brokers together: what they say, and how often they dial.
LIES_FOR = 120.0
MOST_MESSAGES = 30_000
MOST_DIALLED = 600

numbers = count()


def nobody() -> Contact:
    number = next(numbers)
    return Contact(f"x{number}", f"10.66.{number // 250 % 250}.{number % 250 + 1}:7070")


def said(to: str, *messages) -> list[Send]:
    return [Send(to, message) for message in messages]


def sizes(message, to, router):
    """It counts as many as no network has, and then none."""
    if isinstance(message, Nearby):
        return said(to, *[msgspec.structs.replace(message, size=size) for size in (2**62, 0, 2**40, 1)])
    if isinstance(message, Hello) and message.standing is not None:
        standing = msgspec.structs.replace(message.standing, size=2**62)
        return said(to, msgspec.structs.replace(message, standing=standing))
    return None


def paths(message, to, router):
    """It says that the name of its part has come through somebody else, whom that parts from the others."""
    if isinstance(message, Hello | Joined):
        one = (Component("0", 0), (VICTIM, LIAR))
        return said(to, msgspec.structs.replace(message, component=one[0], path=one[1]))
    return None


def names(message, to, router):
    """It has a new name each time, and many of them."""
    if isinstance(message, Nearby | Joined):
        return said(to, message, *[Joined(Component("0", 10**6 - next(numbers)), (LIAR,)) for _ in range(40)])
    return None


def addresses(message, to, router):
    """It has neighbours where nobody is."""
    if isinstance(message, Nearby):
        return said(to, msgspec.structs.replace(message, contacts=tuple([nobody() for _ in range(32)])))
    return None


def suggestions(message, to, router):
    """It knows of ever more brokers that its root should ask."""
    return said(to, message, *[Suggest(nobody()) for _ in range(50)])


def refusals(message, to, router):
    """It takes nobody, and knows many others who might."""
    if isinstance(message, Hello) and not (message.standing and message.standing.asks):
        others = tuple([nobody() for _ in range(32)])
        return said(to, Goodbye("full", "full", others))
    return None


def smaller(message, to, router):
    """It takes nobody, as its part is always the smaller one."""
    if isinstance(message, Hello) and not (message.standing and message.standing.asks):
        return said(to, Goodbye("smaller", "smaller"))
    return None


def mute(message, to, router):
    """It lets itself be asked, and never says anything."""
    return []


LIES = (sizes, paths, names, addresses, suggestions, refusals, smaller, mute)


def lying(lie, over: list[bool]):
    """Makes routers, of which one lies until that is over."""

    class Liar(Router):
        def handle(self, message, source, now):
            return self._lies(super().handle(message, source, now))

        def on_timer(self, name, now):
            return self._lies(super().on_timer(name, now))

        def _lies(self, effects):
            if over:
                return effects
            found = []
            for effect in effects:
                told = lie(effect.message, effect.broker, self) if isinstance(effect, Send) else None
                found += [effect] if told is None else told
            return found

    return lambda configuration, facts: (Liar if configuration.broker == LIAR else Router)(configuration, facts)


def are_together(world: OverlayWorld) -> bool:
    """Whether all but the liar are in one part; it may be in between."""
    return len([part for part in parts(world) if part != {LIAR}]) == 1


@pytest.mark.parametrize("kind", ["tree", pytest.param("mesh", marks=pytest.mark.slow)])
@pytest.mark.parametrize("seed", [1, *[pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 9)]])
@pytest.mark.parametrize("lie", LIES)
def test_a_network_bears_a_liar(lie, seed, kind):
    over: list[bool] = []
    scenario = OverlayScenario(seed=seed, kind=kind, brokers=BROKERS, joins=(0, 4), degree=3)
    world = OverlayWorld(scenario, lying(lie, over))
    for number, broker in enumerate(world.brokers):
        world.after(0.5 * number, world.begin, broker)
    world.run(60.0)
    assert are_together(world)
    before, dialled = world.sent.total(), world.dialled
    world.crash(world.brokers[5])
    world.run(world.now + LIES_FOR / 2)
    assert are_together(world)
    world.begin(world.brokers[5])
    world.run(world.now + LIES_FOR / 2)
    assert are_together(world)
    assert not world.restless
    honest = world.sent.total() - before
    assert honest < MOST_MESSAGES
    assert world.dialled - dialled < MOST_DIALLED
    over.append(True)
    world.crash(world.brokers[4])
    world.run(world.now + 120.0)
    assert list(at_rest(world)) == []
    world.begin(world.brokers[4])
    world.run(world.now + 120.0)
    assert list(at_rest(world)) == []
