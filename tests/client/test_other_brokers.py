"""A client that was given one address goes on at other brokers, of which the one that it was with has told."""

from __future__ import annotations

import pytest

import palio
from palio import testing
from palio.client.address import told_places
from palio.client.dialling import Backoff
from palio.protocol.overlay import MOST_TOLD, Contact, OtherBrokers
from palio.routing.overlay.settings import OverlaySettings
from palio.testing.broker import Broker

QUICK = Backoff(first=0.001, longest=0.01)


def member(name: str, *join: str, kind: str = "tree") -> Broker:
    overlay = OverlaySettings(kind=kind, join=join)
    return testing.broker(name=name, overlay=overlay, journal=True, heartbeat=0.2)


def others(client: palio.Client) -> list:
    return client._session._others


async def heard(client: palio.Client, *brokers: Broker) -> None:
    """Wait until a client has heard of these."""
    wanted = {("127.0.0.1", one.port) for one in brokers}
    while not wanted <= set(others(client)):
        await client.flush(arrived=True)


@pytest.mark.parametrize("kind", ["tree", "mesh"])
async def test_it_survives_the_death_of_its_broker_and_of_the_next(kind):
    one = member("one", kind=kind)
    async with one as first:
        other = member("other", first, kind=kind)
        async with palio.connect(first, backoff=QUICK) as client, other as second:
            subscription = await client.subscribe("n >= 0", durable="desk")
            await heard(client, other)  # which has come later
            third = member("third", second, kind=kind)
            async with third:
                await one.crash()
                await client.publish({"n": 1})
                assert client.broker == "other"
                await heard(client, third)
                await other.crash()
                await client.publish({"n": 2})
                assert client.broker == "third"
                fresh = await client.subscribe("n >= 0")
                await client.publish({"n": 3})
                assert (await fresh.next(timeout=10))["n"] == 3
                await one.start()  # its own address counts first, the next time
                await third.crash()
                await client.publish({"n": 4})
                assert client.broker == "one"
                await other.start()
                await third.start()
                found = set()
                while found != {1, 2, 3, 4}:  # which lie in the journals of all three
                    event = await subscription.next(timeout=20)
                    await event.ack()
                    found.add(event["n"])


async def test_it_need_not_and_brokers_with_links_of_their_settings_tell_nothing():
    one = member("one")
    async with one as first, member("other", first) as second:
        async with palio.connect(first, other_brokers=False) as staying, palio.connect(first) as going:
            while not others(going):
                await going.flush(arrived=True)
            await staying.flush(arrived=True)
            assert others(staying) == []
        async with palio.connect(second) as client:
            await heard(client, one)
            assert others(client) == [("127.0.0.1", one.port)]
    async with testing.network([("a", "b")]) as network, palio.connect(network["a"].address) as client:
        network["a"].running.directory.look()
        await client.flush(arrived=True)
        assert others(client) == []


def test_only_machines_are_gone_to_and_as_securely_as_before():
    told = [
        *("palio://10.0.0.1:7070", "palios://10.0.0.2:7070", "palio://name.example:7070", "10.0.0.3:7070"),
        *("palio://[fd00::1]:7070", "palio://0.0.0.0:7070", "palio://10.0.0.4:0", "palio://10.0.0.5:99999", ""),
        *("palio://224.0.0.1:7070", "ws://10.0.0.6:7080"),
    ]
    assert told_places("palio://one", told) == [("10.0.0.1", 7070), ("fd00::1", 7070)]
    assert told_places("palios://one", told) == [("10.0.0.2", 7070)]
    assert told_places("ws://one", told) == []


class Sessions:
    """A broker with sessions of which nothing is real but what they are told."""

    def __init__(self, hosts, contacts, **settings) -> None:
        self.settings = testing.broker(overlay=OverlaySettings(kind="tree", **settings))._settings
        self.tls = None
        self.router = self
        self.neighbours, self.known = tuple(contacts), ()
        self.sessions = {host: Session(host) for host in hosts}

    def overlay(self):
        return self

    def is_relay(self, name: str) -> bool:
        return name == "relay"


class Session:
    binding, knows = "palio", frozenset({"otherbrokers"})

    def __init__(self, host: str) -> None:
        self.host = host
        self.said: list[OtherBrokers] = []

    def say(self, message: OtherBrokers) -> None:
        self.said.append(message)


@pytest.mark.parametrize("networks", [("127.0.0.0/8", "10.0.0.0/8"), ("10.0.0.0/8",)])
def test_what_is_told_is_in_networks_that_are_allowed_and_for_whom_it_is_of_use(networks):
    from palio.broker.directory import Directory

    told = [
        "palio://10.0.0.1:1",
        "palio://127.0.0.1:2",
        "palio://8.8.8.8:3",
        "palio://name:4",
        "palios://10.0.0.5:5",
    ]
    contacts = [Contact("relay" if "0.1:1" in one else "b", one) for one in [*told, "palio://10.0.0.6:6"]]
    broker = Sessions(["127.0.0.1", "10.0.0.9"], contacts, networks=networks)
    directory = Directory(broker)
    for _ in range(3):
        directory.look()
    here, there = broker.sessions.values()
    own = ["palio://127.0.0.1:2"] if "127.0.0.0/8" in networks else []
    assert here.said == [OtherBrokers(("palio://10.0.0.6:6", *own))], "once"
    assert there.said == [OtherBrokers(("palio://10.0.0.6:6",))]
    here.knows = frozenset()
    broker.neighbours = [Contact("b", f"palio://10.0.0.{number}:7070") for number in range(1, 100)]
    directory.look()
    assert len(here.said) == 1, "who does not know the message is not told"
    assert len(there.said[-1].addresses) == MOST_TOLD
