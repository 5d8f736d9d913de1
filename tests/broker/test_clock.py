"""The clock goes on, whatever is done to the machine's."""

from palio.broker.clock import Clock


class Machine:
    def __init__(self):
        self.passed = 0.0
        self.offset = 1_000.0

    def clock(self):
        return Clock(lambda: self.passed + self.offset, lambda: self.passed)

    def wait(self, seconds):
        self.passed += seconds


def test_it_is_the_time_of_day():
    machine = Machine()
    clock = machine.clock()
    for _ in range(10):
        machine.wait(0.5)
        assert clock() == machine.passed + 1_000.0


def test_it_follows_a_jump_forward():
    machine = Machine()
    clock = machine.clock()
    machine.offset += 86_400.0
    assert clock() == 87_400.0


def test_after_a_jump_back_it_goes_on_slowly_until_it_is_right_again():
    machine = Machine()
    clock = machine.clock()
    machine.offset -= 60.0
    times = [clock()]
    for _ in range(200):
        machine.wait(1.0)
        times.append(clock())
    assert all(earlier < later for earlier, later in zip(times, times[1:], strict=False))
    assert times[10] == times[0] + 5.0
    assert times[-1] == machine.passed + machine.offset
