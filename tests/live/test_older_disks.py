"""A broker whose disk came back older than it was, or empty: what it publishes then reaches homes elsewhere.

It gives sequences a second time. A durable subscription at another broker, which has those already, gets every
event that was confirmed since, and is told what may be missing.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import palio
from palio.cli.network.broker_status import _gap_sentence, _peers
from palio.client.durable import DurableSubscription
from palio.store.copies import back_up
from palio.store.copies import restore as bring_back
from tests.live.network import Network, Node, play, until

QUICK = {"tick": 0.2, "settle_within": 0.1}
BEFORE, LOST, AFTER = 20, 30, 50


async def publish(node: Node, *counts: int) -> None:
    """Publish events with these counts, each confirmed."""
    client = await palio.connect(node.address, name="publisher")
    for count in counts:
        await client.publish({"count": count})
    await client.close()


class Reader:
    """Whoever takes all from a durable subscription; what came, in order."""

    def __init__(self) -> None:
        self.counts: list[int] = []
        self.subscription: DurableSubscription

    async def open(self, node: Node) -> None:
        self.client = await palio.connect(node.address, name="reader", heartbeat=1.0)
        found = await self.client.subscribe("count >= 0", durable="desk", ready="network")
        assert isinstance(found, DurableSubscription)
        self.subscription = found

    async def read_until(self, last: int) -> None:
        while last not in self.counts:
            event = await self.subscription.next(60.0)
            self.counts.append(event["count"])
            await event.ack()


def restore(copy: Path, data: Path) -> None:
    shutil.rmtree(data)
    shutil.copytree(copy, data)


def remove(copy: Path, data: Path) -> None:
    for file in data.glob("*.db*"):
        file.unlink()


def lose_the_log(copy: Path, data: Path) -> None:
    """The newest is in the log that is written ahead, and that is lost."""
    logs = [*data.glob("*.db-wal")]
    assert logs
    for file in logs:
        file.unlink()


@pytest.mark.parametrize(
    ("fault", "between"),
    [(restore, True), (remove, False), (lose_the_log, False)],
    ids=["restored", "removed", "its end lost"],
)
def test_what_is_published_on_an_older_disk_arrives_and_the_gap_is_named(
    tmp_path: Path, fault: Callable[[Path, Path], None], between: bool
) -> None:
    async def scene() -> None:
        async with Network(tmp_path, heartbeat=1.0, durable=QUICK) as network:
            await network.build([("b", "m"), ("m", "a")] if between else [("b", "a")])
            reader = Reader()
            await reader.open(network["b"])
            await publish(network["a"], *range(BEFORE))
            await reader.read_until(BEFORE - 1)
            await network["a"].stop()
            data, copy = network["a"].folder / "data", tmp_path / "copy"
            shutil.copytree(data, copy)
            await network["a"].start()
            await network.linked()
            await publish(network["a"], *range(BEFORE, BEFORE + LOST))
            await reader.read_until(BEFORE + LOST - 1)
            network["a"].kill()
            fault(copy, data)
            await network["a"].start()
            # Some of it before the network knows, some of it after.
            first, half = BEFORE + LOST, BEFORE + LOST + AFTER // 2
            await publish(network["a"], *range(first, half))
            await network.linked()
            await publish(network["a"], *range(half, first + AFTER))
            await reader.read_until(first + AFTER - 1)
            assert [count for count in reader.counts if count >= first] == list(range(first, first + AFTER))
            assert [count for count in reader.counts if count < first][: BEFORE + LOST] == list(range(first))
            await until("the gap is named", lambda: reader.subscription.gaps)
            (gap,) = reader.subscription.gaps
            assert (gap.origin, gap.after, gap.upto) == ("a", BEFORE + LOST, None)
            assert "A journal came back older than it was" in network["b"].log
            (row,) = await network["b"].inspect("gaps")
            assert (row["origin"], row["after"]) == ("a", BEFORE + LOST)
            _, shown = await _peers(network["b"].address)
            assert "The journal of a came back older than it was: what it had after 50 may be missing." in (
                _gap_sentence(shown[0])
            )
            await reader.client.close()
            again = Reader()
            await again.open(network["b"])
            await until("the gap is named to who comes later", lambda: again.subscription.gaps == [gap])
            await again.client.close()

    play(scene)


def test_a_restored_backup_is_told_as_an_event_by_each_broker_that_notices(tmp_path: Path) -> None:
    """The copy is made of a running broker, and brought back when that has been killed."""

    async def scene() -> None:
        async with Network(tmp_path, heartbeat=1.0, durable=QUICK) as network:
            await network.build([("b", "a")])
            store = f"sqlite:///{network['a'].folder}/data/palio.db"
            operators = {name: await palio.connect(network["b"].address, name=name) for name in ("one", "two")}
            notices = await operators["one"].subscribe('palio.notice = "gap"', durable="gaps", ready="network")
            readers = [
                await operators["two"].subscribe("count >= 0", durable=name, ready="network")
                for name in ("desk", "shelf")
            ]
            await publish(network["a"], *range(BEFORE))
            back_up(store, tmp_path / "copy.db")
            await publish(network["a"], *range(BEFORE, BEFORE + LOST))
            for reader in readers:
                found = [(await reader.next(60.0))["count"] for _ in range(BEFORE + LOST)]
                assert found == list(range(BEFORE + LOST))
            network["a"].kill()
            restored = bring_back(tmp_path / "copy.db", store, replace=True)
            assert restored.heads == {"a": BEFORE}
            await network["a"].start()
            await network.linked()
            await publish(network["a"], 100)
            told = {}
            for _ in range(2):
                event = await notices.next(60.0)
                told[event["palio.broker"]] = event
                await event.ack()
            assert {event["palio.origin"] for event in told.values()} == {"a"}
            # The one for notices had not got everything: what is not its own moves its position now and then.
            assert BEFORE < told["b"]["palio.after"] <= BEFORE + LOST
            assert told["b"]["palio.why"] == "came back older"
            assert (told["a"]["palio.after"], told["a"]["palio.upto"]) == (BEFORE, BEFORE + LOST)
            for reader in readers:
                assert (await reader.next(60.0))["count"] == 100
            # Two subscriptions miss the same, and it is told once; and whoever looks back finds it there.
            survey = await operators["one"].survey("exists(palio.notice)", since=0.0)
            assert survey.count == 2
            for operator in operators.values():
                await operator.close()

    play(scene)
