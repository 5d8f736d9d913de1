"""A broker's clock follows that of its machine, but never goes back and never stands still."""

import random

from palio.broker.clock import SLOWED, MonotonicClock
from palio.broker.host import life_at
from palio.routing.durable.network.topology import INCARNATION_BITS, MAX_OWN


class Machine:
    """A machine whose clock can be set, and its steady one."""

    def __init__(self):
        self.time = 1_000.0
        self.steady = 5.0

    def pass_by(self, seconds):
        self.time += seconds
        self.steady += seconds


def clock_of(machine):
    return MonotonicClock(lambda: machine.time, lambda: machine.steady)


def test_it_is_the_time_of_the_machine_and_follows_it_forwards():
    machine = Machine()
    clock = clock_of(machine)
    assert clock() == 1_000.0
    machine.pass_by(3.0)
    assert clock() == 1_003.0
    machine.time += 86_400.0
    assert clock() == clock.last == 87_403.0


def test_set_back_it_goes_on_slowly_until_the_machine_has_caught_up():
    machine = Machine()
    clock = clock_of(machine)
    machine.time -= 100.0
    machine.pass_by(10.0)
    assert clock() == 1_000.0 + SLOWED * 10.0
    machine.pass_by(500.0)
    assert clock() == machine.time == 1_410.0


def test_however_the_machine_is_set_time_only_grows():
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    chance = random.Random(seed)
    machine = Machine()
    clock = clock_of(machine)
    last = clock()
    for _ in range(1_000):
        machine.pass_by(chance.random())
        machine.time += chance.choice((0.0, 0.0, 50.0, -50.0))
        now = clock()
        assert now > last
        assert now >= machine.time
        last = now


def test_lives_of_a_broker_are_numbered_by_the_clock_and_fit_where_they_go():
    """A disk that came back older does not know the last ones: the clock does, unless it was set back."""
    first, later = life_at(1_800_000_000.0), life_at(1_800_000_000.2)
    assert 0 < first < later
    assert life_at(0.0) == 0
    assert life_at(1e12) << INCARNATION_BITS < MAX_OWN
