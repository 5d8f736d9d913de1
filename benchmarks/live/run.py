"""One run: a system, a scenario, all parties started, the clock, and what came of it."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from functools import lru_cache

import msgspec

from benchmarks.live.content import Background, Content, rotated, total
from benchmarks.live.parties import Counters, Party, Plan, Report, Role
from benchmarks.live.servers import Server

# A subscriber that gets nothing for so long after all was published will not get it any more.
SILENCE = 5.0
READY = 600.0  # a hundred thousand filters are registered one by one


class Scenario(msgspec.Struct, frozen=True):
    """Who publishes to how many, and how much."""

    name: str
    publishers: int
    subscribers: int
    events: int
    rate: float = 0.0
    in_flight: int = 0
    group: int = 1

    @property
    def is_timed(self) -> bool:
        return self.rate > 0

    @property
    def is_durable(self) -> bool:
        return self.in_flight > 0


# How far publishers may be ahead of a durable subscriber.
DURABLE_WINDOW = 8_000


class Run(msgspec.Struct, frozen=True):
    """What came of a run. CPU is in seconds an event: of all publishers, the server, one subscriber."""

    events: int
    seconds: float  # from the first publish until the last subscriber had the last event
    confirmed_seconds: float  # until the last was confirmed, or at least sent
    delivered: int
    lost: int
    publisher_cpu: float
    server_cpu: float
    subscriber_cpu: float
    background_cpu: float
    background_missing: int
    median: float = 0.0  # latency
    high: float = 0.0  # its 99th percentile

    @property
    def rate(self) -> float:
        return self.events / self.seconds

    @property
    def confirmed_rate(self) -> float:
        return self.events / self.confirmed_seconds


class System:
    """A server that is up, and the roles of its clients."""

    def __init__(
        self,
        label: str,
        server: Server,
        publish: Role,
        subscribe: Role,
        *,
        background: Background | None = None,
        crowd: Callable[[Background], Role] | None = None,
        pace: float = 1.0,
        token: str | None = None,
        authority: str | None = None,
        scheme: str = "palio",
    ) -> None:
        self.label = label
        self._credentials = {"token": token, "authority": authority, "scheme": scheme}
        self.server = server
        self.background = background or Background(0)
        self.pace = pace  # a slow one is given this part of the events
        self._publish = publish
        self._subscribe = subscribe
        self._crowd: Party | None = None
        self._received = 0
        if crowd is not None and self.background.count:
            plan = Plan(server.port, 0, 0, **self._credentials)
            self._crowd = Party("background client", crowd(self.background), plan, Counters(1, 1, 0))
        self.registering = time.perf_counter()

    def await_background(self) -> None:
        """Wait until all background filters are registered."""
        if self._crowd is not None:
            self._crowd.hear(READY)
        self.registering = time.perf_counter() - self.registering

    def stop(self) -> None:
        if self._crowd is not None:
            self._crowd.say("end")
            self._crowd.end()
        self.server.stop()

    def run(self, scenario: Scenario, *, window: int, json: bool, seconds: float = 0.0) -> Run:
        """Raises `PartyFailed`."""
        each = max(1, round(scenario.events * self.pace) // scenario.publishers)
        # Without a number of events that all know, subscribers are told at the end.
        expected = 2**62 if seconds else each * scenario.publishers
        # Beyond the outbox of a durable subscription one would measure how it catches up.
        window = min(window, DURABLE_WINDOW) if scenario.is_durable else window
        counters = Counters(scenario.publishers, scenario.subscribers, window)
        common = Plan(
            self.server.port, 0, expected, rate=scenario.rate, timed=scenario.is_timed, json=json,
            durable=scenario.is_durable, in_flight=scenario.in_flight, group=scenario.group, seconds=seconds,
            **self._credentials,
        )  # fmt: skip
        gc.freeze()  # what the parties inherit is not looked at by their collectors
        parties = self._start("subscriber", self._subscribe, scenario.subscribers, common, counters)
        try:
            parties += self._start(
                "publisher", self._publish, scenario.publishers,
                msgspec.structs.replace(common, events=0 if seconds else each), counters,
            )  # fmt: skip
            subscribers, publishers = parties[: scenario.subscribers], parties[scenario.subscribers :]
            before, before_background = self.server.cpu(), self._background_report()
            for party in publishers:
                party.say("go")
            sent = [_report(party, None) for party in publishers]
            received = self._received_by(subscribers, counters, sum(one.count for one in sent))
            after = self.server.cpu()
        finally:
            for party in parties:
                party.end()
        matches = _matches(self.background)
        wanted = sum(total(rotated(matches, number), one.count) for number, one in enumerate(sent))
        background = self._background_settled(before_background, wanted)
        return self._summed(
            sent, received, after - before,
            background_cpu=background.cpu - before_background.cpu,
            missing=wanted - (background.count - before_background.count),
        )  # fmt: skip

    def _start(self, who: str, role: Role, count: int, common: Plan, counters: Counters) -> list[Party]:
        parties = []
        for number in range(count):
            contents = rotated(_events(type(self.background)), number) if role is self._publish else []
            plan = msgspec.structs.replace(common, number=number, contents=contents)
            parties.append(Party(f"{who} of {self.label}", role, plan, counters))
        for party in parties:
            party.hear(READY)
        return parties

    def _received_by(self, subscribers: list[Party], counters: Counters, published: int) -> list[Report]:
        """What all of them have; who gets nothing for some time, or has all of it, is told that it is over."""
        received: list[Report | None] = [None] * len(subscribers)
        progress, since, told = -1, time.perf_counter(), False
        while None in received:
            for number, party in enumerate(subscribers):
                if received[number] is None:
                    received[number] = party.hear(0.05)
            now = sum(counters.received)
            if now != progress:
                progress, since = now, time.perf_counter()
            late = time.perf_counter() - since > SILENCE
            if late and not told:
                told = True
                for number, party in enumerate(subscribers):
                    if received[number] is None:
                        party.say("end")
        return [one for one in received if one is not None]

    def _summed(
        self, sent: list[Report], received: list[Report], used: float, *, background_cpu: float, missing: int
    ) -> Run:
        events = sum(one.count for one in sent)
        delivered = sum(one.count for one in received)
        began = min(one.began for one in sent)
        latencies = sorted(latency for one in received for latency in _settled(one))
        return Run(
            events,
            max(one.ended for one in received) - began,
            max(one.ended for one in sent) - began,
            delivered,
            events * len(received) - delivered,
            sum(one.cpu for one in sent) / events,
            used / events,
            statistics.fmean(one.cpu for one in received) / events,
            background_cpu / events,
            missing,
            latencies[len(latencies) // 2] if latencies else 0.0,
            latencies[len(latencies) * 99 // 100] if latencies else 0.0,
        )

    # The background client

    def _background_report(self) -> Report:
        if self._crowd is None:
            return Report(0, 0.0, 0.0, 0.0)
        self._crowd.say("report")
        return _report(self._crowd, None)

    def _background_settled(self, before: Report, wanted: int) -> Report:
        """Its count when it has all that it should have, or does not get more."""
        seen, since = -1, time.perf_counter()
        while True:
            now = self._background_report()
            if now.count != seen:
                seen, since = now.count, time.perf_counter()
            if now.count - before.count >= wanted or time.perf_counter() - since > SILENCE:
                return now
            time.sleep(0.05)


def _report(party: Party, seconds: float | None) -> Report:
    said: Report = party.hear(seconds)
    return said


def _settled(report: Report) -> list[float]:
    """Without the first tenth, in which connections and caches are new."""
    samples = report.samples()
    return list(samples[len(samples) // 10 :])


@lru_cache
def _events(kind: type[Background]) -> list[Content]:
    return kind(0).events()


@lru_cache
def _matches(background: Background) -> list[int]:
    return background.matches(_events(type(background))) if background.count else [0]
