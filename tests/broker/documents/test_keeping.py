"""Documents of a whole network: all brokers that keep them agree, whatever they hear first."""

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import palio
from palio import testing
from palio.broker.documents.fetching import FETCHED
from palio.broker.documents.settings import DocumentSettings
from palio.broker.settings import Settings, WrongSetting, require_safe
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.protocol.envelope import Envelope
from palio.routing.documents.current import Versions, current_of, record_of, with_documents
from palio.routing.documents.keeping import widened
from palio.routing.durable.effects import Append
from palio.store.records import encode_envelope
from tests.broker.documents.cards import CARD, PRICE, card
from tests.security.world import World

KEEP = DocumentSettings(keep=f'xml.family = "card" and `{PRICE}` < 50')


def version(origin, sequence, time, price, **more):
    attributes = {"xml.family": "card", "xml.key": "c1", "price": price} | more
    return Envelope(origin, sequence, time, 0, origin, Notification(attributes, payload=b"<card/>"))


@st.composite
def published(draw, steady=False):
    """What some brokers have published: sequences grow, and where clocks are steady, so do times."""
    versions = []
    for origin in ("a", "b", "c")[: draw(st.integers(1, 3))]:
        sequence = 0
        for _ in range(draw(st.integers(0, 4))):
            sequence += draw(st.integers(1, 3))
            time = float(draw(st.integers(0, 4)))
            if steady and versions and versions[-1].origin == origin:
                time = max(time, versions[-1].time)
            versions.append(version(origin, sequence, time, draw(st.integers(0, 3))))
    return versions


@given(published(), st.randoms(use_true_random=False), st.integers(0, 4))
def test_any_order_and_any_repetition_gives_the_same(versions, chance, most):
    keep = Filter.parse(f"price < {most}")
    heard = versions + chance.choices(versions, k=3) if versions else []
    chance.shuffle(heard)
    known = Versions()
    for one in heard:
        known = Versions.of(known.with_version(one, keep).encoded)
    found = current_of(None, known.encoded)
    # The oracle: the latest of all; and then whether it is kept.
    latest = sorted(versions, key=lambda one: (one.time, one.origin, one.sequence))[-1:]
    expected = [one for one in latest if keep.matches(one.notification)]
    assert ([found.envelope] if found is not None else []) == expected


@given(published(steady=True), st.integers(0, 3))
def test_what_was_published_here_is_one_of_the_origins(versions, here):
    own = "abc"[min(here, 2)]
    elsewhere = Versions()
    last = None
    for one in versions:
        if one.origin == own:
            record = record_of(one)
            assert (record.value, record.event) == (None, one.sequence)
            last = encode_envelope(one)
        else:
            elsewhere = elsewhere.with_version(one, None)
    everything = Versions()
    for one in versions:
        everything = everything.with_version(one, None)
    assert current_of(last, elsewhere.encoded) == current_of(None, everything.encoded)


def test_events_that_are_no_documents_leave_no_record():
    some = [version("a", n, 1.0, n) for n in range(3)]
    other = [Envelope("a", 9, 1.0, 0, "a", Notification({"xml.family": "card", "price": 1}))]
    assert with_documents(Append(1, tuple(other), "p")).records == ()
    assert [one.key for one in with_documents(Append(1, (*some, *other), "p")).records] == ["card/c1"] * 3


@pytest.mark.parametrize(
    ("keep", "asked"),
    [
        ("true", "exists(string xml.family) and exists(string xml.key)"),
        ("price < 5", "exists(string xml.family) and exists(string xml.key)"),
        (
            'xml.family = "a" and x = 1 or xml.family = "b" and xml.key starts with "k"',
            'xml.family = "a" and exists(string xml.key) or xml.family = "b" and xml.key starts with "k"',
        ),
    ],
)
def test_all_versions_are_asked_for(keep, asked):
    assert widened(Filter.parse(keep)) == Filter.parse(asked)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (Settings(documents=DocumentSettings(keep="price <")), "Column"),
        (Settings(documents=DocumentSettings(keep="x = 1 and x = 2")), "never match"),
        (Settings(documents=DocumentSettings(keep="true"), journal=False), "journal"),
    ],
)
def test_what_cannot_be_kept_is_told_at_the_beginning(settings, said):
    with pytest.raises(WrongSetting, match=r"documents\.keep") as problem:
        require_safe(settings)
    assert said in str(problem.value)


def tell(network):
    for one in network.brokers.values():
        if one.is_running:
            one.running.documents.readers.tell([CARD])


async def everything(client, last):
    documents = {}
    async for one in client.documents('xml.family = "card"', at_least=last):
        documents[one["xml.key"]] = (one.origin, one.sequence, one.payload)
    return documents


async def test_brokers_that_keep_documents_agree_also_after_crashes():
    network = testing.network([("a", "b"), ("b", "c")], journal=True, documents=KEEP)
    async with network:
        tell(network)
        chance = random.Random(7)
        clients = {name: await palio.connect(network[name].address) for name in "abc"}
        latest, last = {}, {}
        for number in range(45):
            name, key = chance.choice("abc"), f"c{chance.randrange(5)}"
            if number == 20:
                await network["b"].crash()
                await network["b"].start()
                await network.until_linked()
                tell(network)
            price = chance.choice([1, 20, 70])
            confirmed = await clients[name].publish_document(card(key, price=price), timeout=30)
            latest[key] = (confirmed.origin, confirmed.sequence, card(key, price=price)), price
            last[name] = confirmed
        expected = {key: one for key, (one, price) in latest.items() if price < 50}
        for name, client in clients.items():
            for one in last.values():
                found = await everything(client, one)
            # What was published here is here, whatever is kept.
            own = {key: one for key, (one, _) in latest.items() if one[0] == name}
            assert found == expected | own, name
        withdrawn = await clients["a"].withdraw_document("card", next(iter(expected)))
        for client in clients.values():
            assert next(iter(expected)) not in await everything(client, withdrawn)
            await client.close()


async def test_who_begins_later_or_with_another_filter_has_what_journals_have(tmp_path):
    world = World(tmp_path)
    world.add("desk", "true", "true")
    one = world.broker(name="one", journal=True)
    await one.start()
    one.running.documents.readers.tell([CARD])
    async with world.connect(one.address, "desk") as client:
        hold = await client.subscribe("false or exists(xml.family)", durable="hold")
        await hold.ready(10)
        for n in range(4):
            last = await client.publish_document(card(f"c{n}", price=n * 20))
        host = None
        for keep, keys in (
            (KEEP, ["c0", "c1", "c2"]),
            (DocumentSettings(keep=f"`{PRICE}` > 30"), ["c2", "c3"]),
        ):
            two = world.broker(name="two", journal=True, documents=keep)
            if host is not None:
                two._host.place = host.place
            host = two._host
            two.link_to(one)
            await two.start()
            async with world.connect(two.address, "desk") as other:
                assert sorted(await everything(other, last)) == keys
                with pytest.raises(palio.client.errors.RequestRefused, match="has not heard"):
                    await other.document(
                        "card", "c1", at_least=palio.client.Confirmation("three", 1), timeout=1
                    )
            await two.stop()
    await one.stop()


@pytest.mark.parametrize("seed", range(2))
async def test_who_begins_late_keeps_what_who_was_there_keeps(seed):
    """Whatever was published, withdrawn and trimmed before: the same as at a broker that has heard it all."""
    draw = random.Random(seed)
    everywhere = DocumentSettings(keep="exists(xml.family)")
    network = testing.network([("a", "b"), ("b", "early")], journal=True, documents=everywhere)
    async with network:
        tell(network)
        clients = {name: await palio.connect(network[name].address) for name in "ab"}
        last = {}
        for _ in range(40):
            name, key = draw.choice("ab"), f"c{draw.randrange(7)}"
            what = draw.random()
            if what < 0.1:
                await clients[name].trim_journal()
            elif what < 0.3 and key in last:
                try:
                    last[key] = last[name] = await clients[name].withdraw_document("card", key)
                except palio.client.errors.RequestRefused:
                    continue
            else:
                last[key] = last[name] = await clients[name].publish_document(
                    card(key, price=draw.randrange(9))
                )
        async with palio.connect(network["early"].address) as early:
            for one in (last["a"], last["b"]):
                expected = await everything(early, one)
        for name in "ab":
            if draw.random() < 0.8:
                await clients[name].trim_journal()
        late = testing.broker(name="late", journal=True, documents=everywhere)
        late.link_to(network["early"])
        for turn in range(2):  # the second time it has it already
            await late.start()
            async with palio.connect(late.address) as other:
                for one in (last["a"], last["b"]):
                    assert await everything(other, one) == expected, (seed, turn)
            [fetched] = late.running.store.records(FETCHED)
            await late.stop()
        # What is published elsewhere while it is away comes, too.
        last["a"] = await clients["a"].publish_document(card("new"))
        await late.start()
        async with palio.connect(late.address) as other:
            assert (await other.document("card", "new", at_least=last["a"]))["xml.key"] == "new"
        assert late.running.store.records(FETCHED) == [fetched]
        await late.stop()
        for client in clients.values():
            await client.close()


async def test_many_documents_that_were_trimmed_come_page_by_page():
    one = testing.broker(name="one", journal=True)
    await one.start()
    one.running.documents.readers.tell([CARD])
    async with palio.connect(one.address) as client:
        contents = [card(f"c{n}", "x" * (n % 3 * 20_000)) for n in range(300)]
        answers = await asyncio.gather(*[client.publish_document(content) for content in contents])
        await client.publish_document(card("c0"))
        last = await client.withdraw_document("card", "c1")
        await client.trim_journal()
    two = testing.broker(name="two", journal=True, documents=DocumentSettings(keep='xml.family = "card"'))
    two.link_to(one)
    await two.start()
    async with palio.connect(two.address) as other:
        found = await everything(other, last)
    expected = {f"c{n}": ("one", answers[n].sequence, contents[n]) for n in range(2, 300)}
    assert found == expected | {"c0": ("one", last.sequence - 1, card("c0"))}
    await two.stop()
    await one.stop()


async def test_a_clock_that_is_set_back_lets_no_old_version_come_back():
    """Over restarts: the version with the highest sequence is the current one, here and where it is kept."""
    clock = testing.Clock()
    one = testing.broker(name="one", journal=True, clock=clock)
    await one.start()
    one.running.documents.readers.tell([CARD])
    two = testing.broker(name="two", journal=True, documents=DocumentSettings(keep='xml.family = "card"'))
    two.link_to(one)
    await two.start()
    began = clock.now()
    async with palio.connect(two.address) as other:
        for price, back in ((1, 500.0), (2, 400.0), (3, -100.0), (4, -2_000.0)):
            async with palio.connect(one.address) as client:
                last = await client.publish_document(card("c1", price=price))
                event = await client.publish({"other": price})
                assert (await client.document("card", "c1")).sequence == last.sequence
            assert (await other.document("card", "c1", at_least=last))[PRICE] == price
            await one.stop()
            clock._now -= back
            await one.start()
            one.running.documents.readers.tell([CARD])
            await one.until(lambda: "two" in one.running.links)
        async with palio.connect(one.address) as client:
            times = [(one.sequence, one.time) async for one in client.replay("true", until=began + 10_000)]
            assert event.sequence == len(times)
    documents, others = ([time for sequence, time in times if sequence % 2 == rest] for rest in (1, 0))
    assert documents == sorted(documents)
    assert others != sorted(others)  # they have the time of the clock
    await two.stop()
    await one.stop()
