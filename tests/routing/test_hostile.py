"""Nothing that one client asks for costs a link between brokers, or keeps a broker from starting again."""

import random

import pytest

from tests.routing.hostile import Attacker, Scene

STRATEGIES = ("covering", "merging", "simple")


def attack(seed: int, folder, requests: int) -> None:
    chance = random.Random(seed)
    scene = Scene(
        chance,
        f"sqlite:///{folder / 'a.db'}",
        chance.choice(STRATEGIES),
        advertisements=chance.random() < 0.5,
    )
    attacker = Attacker(chance)
    for _ in range(requests):
        scene.ask(attacker.request())
        scene.check()
    durable = scene.durable()
    scene.close()
    scene.open()
    assert scene.durable() == durable
    assert scene.driven.store.statistics().aside == 0
    scene.check()
    scene.close()
    assert scene.outcomes["came in"] > 0


@pytest.mark.parametrize("seed", range(4))
def test_hostile_requests_cost_no_link_and_no_start(seed, tmp_path):
    attack(seed, tmp_path, 15)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1_000, 1_100))
def test_many_hostile_requests_cost_no_link_and_no_start(seed, tmp_path):
    attack(seed, tmp_path, 60)
