"""Families over sockets: added at one broker, known to all, also to those that join later or begin again."""

import asyncio
import sys
import threading

import pytest

import palio
import palio.sync
from palio import testing
from palio.broker.broker import BrokerServer
from palio.broker.documents import requests, sampling
from palio.broker.settings import Settings
from palio.documents import making
from palio.model.errors import MissingDependency
from tests.broker.documents.cards import card
from tests.broker.documents.schema_of_cards import CARD_SCHEMA, WANTED
from tests.broker.test_sharing import line, start, stop
from tests.documents.schemas import mutual
from tests.security.world import World


async def test_a_family_is_added_read_with_shown_and_removed():
    async with testing.broker() as address, palio.connect(address) as client:
        made = await client.families.add("card", **WANTED)
        assert made == {
            "name": "card",
            "namespace": "urn:test:card",
            "root": "card",
            "revision": 1,
            "registered": False,
            "key": ["/card/code"],
            "prefixes": {"": "urn:test:card"},
            "paths": [
                {"expression": "/card/price", "kind": "float", "many": False, "name": "price"},
                {"expression": "/card/brand", "kind": "string", "many": True, "name": "brand"},
            ],
            "schemas": ["card.xsd"],
        }
        assert await client.families.ls() == [made]
        shown = await client.families.show("card")
        assert shown == made | {"schemas": [{"name": "card.xsd", "content": CARD_SCHEMA}]}
        subscription = await client.subscribe("`/card/price` < 11")
        await client.publish_document(card())
        event = await subscription.next(timeout=10)
        assert (event["xml.key"], event["/card/price"], event["/card/brand"]) == ("c1", 10.0, ("Acme",))
        with pytest.raises(palio.RequestRefused, match="price"):
            await client.publish_document(card(price="cheap"))
        await client.families.remove("card")
        assert await client.families.ls() == []
        with pytest.raises(palio.RequestRefused, match="No family has documents"):
            await client.publish_document(card())


@pytest.mark.parametrize("journal", [False, True])
async def test_all_brokers_read_with_it_once_it_is_added(journal):
    brokers = line("a", "b", "c", journal=journal)
    await start(brokers)
    try:
        async with palio.connect(brokers[0].address) as one, palio.connect(brokers[2].address) as other:
            await one.families.add("card", **WANTED)
            await other.publish_document(card())
            await other.families.add_paths("card", ["stock=/card/stock", "count(/card/brand)"])
            family = await one.families.show("card")
            assert [path["expression"] for path in family["paths"]] == [
                "/card/price",
                "/card/brand",
                "/card/stock",
                "count(/card/brand)",
            ]
            subscription = await other.subscribe("`count(/card/brand)` = 1", ready="network")
            await one.publish_document(card("c2"))
            assert (await subscription.next(timeout=10))["xml.key"] == "c2"
    finally:
        await stop(brokers)


async def test_a_broker_that_joins_later_and_one_that_begins_again_know_families():
    brokers = line("a", "b", journal=True)
    await brokers[0].start()
    try:
        async with palio.connect(brokers[0].address) as client:
            await client.families.add("card", **WANTED)
            added = await client.families.add_paths("card", ["/card/stock"])
        await brokers[0].crash()
        await start(brokers)
        for broker in brokers:
            await broker.until(lambda broker=broker: broker.running.documents.families.names() == ["card"])
            async with palio.connect(broker.address) as client:
                assert await client.families.ls() == [added]
                await client.publish_document(card())
    finally:
        await stop(brokers)


async def test_paths_that_are_added_at_the_same_time_are_all_there():
    brokers = line("a", "b", "c")
    await start(brokers)
    try:
        clients = [await palio.connect(broker.address) for broker in brokers]
        await clients[0].families.add("card", **WANTED)
        several = [
            client.families.add_paths("card", [f"/card/stock + {number + 10 * turn}"])
            for number, client in enumerate(clients)
            for turn in range(3)
        ]
        await asyncio.gather(*several)
        shown = [await client.families.show("card") for client in clients]
        assert shown[0] == shown[1] == shown[2]
        assert len(shown[0]["paths"]) == 2 + 9
        for client in clients:
            await client.close()
    finally:
        await stop(brokers)


async def test_of_two_brokers_that_add_a_family_at_the_same_time_one_is_told_that_it_is_not_there():
    brokers = line("a", "b", "c")
    await start(brokers)
    try:
        clients = [await palio.connect(broker.address) for broker in brokers]
        others = [WANTED | {"paths": [f"/card/price + {number}"]} for number in range(3)]
        results = await asyncio.gather(
            *[one.families.add("card", **other) for one, other in zip(clients, others, strict=True)],
            return_exceptions=True,
        )
        refused = [one for one in results if isinstance(one, palio.RequestRefused)]
        assert {one.error for one in refused} <= {"FamilyConflict", "FamilyExists"}
        assert len(refused) == 2
        [made] = [one for one in results if isinstance(one, dict)]
        assert [await client.families.ls() for client in clients] == [[made]] * 3
        results = await asyncio.gather(
            *[client.families.change("card", paths=["/card/brand"]) for client in clients],
            *[client.families.change("card", paths=["/card/stock"]) for client in clients],
            return_exceptions=True,
        )
        assert {one.error for one in results if not isinstance(one, dict)} <= {"FamilyConflict"}
        shown = [await client.families.show("card") for client in clients]
        assert shown[0] == shown[1] == shown[2]
        for client in clients:
            await client.close()
    finally:
        await stop(brokers)


async def test_a_change_keeps_paths_that_subscriptions_have_added_and_breaks_nothing_unasked(caplog):
    async with testing.broker(journal=True) as address, palio.connect(address) as client:
        await client.families.add("card", **WANTED)
        await client.families.add_paths("card", ["/card/stock"])
        more = await client.families.change("card", paths=["count(/card/brand)"])
        assert [one["expression"] for one in more["paths"]][2:] == ["/card/stock", "count(/card/brand)"]
        assert more["revision"] == 2
        same = await client.families.change("card")
        assert (same["revision"], same["broken"]) == (2, [])
        with pytest.raises(palio.RequestRefused, match="/card/stock would be gone") as refused:
            await client.families.change("card", without=["/card/stock"])
        assert refused.value.error == "FamilyIncompatible"
        dry = await client.families.change("card", without=["/card/stock"], dry=True)
        assert (dry["broken"], dry["revision"]) == (["The path /card/stock would be gone."], 3)
        assert (await client.families.ls())[0]["revision"] == 2
        forced = await client.families.change("card", without=["/card/stock"], force=True)
        assert (forced["revision"], len(forced["paths"])) == (3, 3)
        [warning] = [one for one in caplog.records if "by force" in one.message]
        assert (warning.family, warning.revision) == ("card", 3)
        await client.publish_document(card())
        again = await client.families.add_paths("card", ["/card/stock"])
        assert len(again["paths"]) == 4


async def test_a_schema_that_changes_while_paths_are_added_gives_them_their_new_kinds():
    """Each happens while the other broker is away; when both are there, both have both."""
    one, other = brokers = line("a", "b", journal=True)
    await start(brokers)
    try:
        async with palio.connect(one.address) as client:
            await client.families.add("card", **WANTED)
        await one.crash()
        async with palio.connect(other.address) as client:
            await client.families.add_paths("card", ["/card/stock"])
        await other.crash()
        await one.start()
        async with palio.connect(one.address) as client:
            text = CARD_SCHEMA.replace(b'name="stock" type="xs:int"', b'name="stock" type="xs:string"')
            await client.families.change("card", [("card.xsd", text)])
        await other.start()
        for broker in brokers:
            registry = broker.running.documents.families
            await broker.until(lambda registry=registry: len(registry.known("card").added) == 1)
            await broker.until(lambda registry=registry: registry.known("card").declared.revision == 2)
            assert not registry.known("card").is_complete
            async with palio.connect(broker.address) as client:
                await client.publish_document(card().replace(b"</price>", b"</price><stock>many</stock>"))
                [path] = (await client.families.show("card"))["paths"][2:]
                assert path == {"expression": "/card/stock", "kind": "string", "many": False, "name": None}
    finally:
        await stop(brokers)


async def test_paths_are_added_up_to_a_limit_and_those_that_are_there_are_always_fine():
    async with testing.broker() as address, palio.connect(address) as client:
        await client.families.add("card", **WANTED)
        for first in range(0, 254, 127):
            await client.families.add_paths("card", [f"/card/price + {n}" for n in range(first, first + 127)])
        with pytest.raises(palio.RequestRefused, match="there may be 256"):
            await client.families.add_paths("card", ["/card/stock"])
        full = await client.families.add_paths("card", ["/card/price", "/card/price + 3"])
        assert len(full["paths"]) == 256
        for wrong, said in (
            ("/card/colour", "Did you mean /card/code"),
            ("int=/card/price + 3", None),
            (":string=/card/price", "as a value of the kind float"),
            (":single=/card/brand", "as several values of the kind string"),
        ):
            if said is not None:
                with pytest.raises(palio.RequestRefused, match=said):
                    await client.families.add_paths("card", [wrong])
            else:
                await client.families.add_paths("card", [wrong])


async def test_paths_that_take_too_long_to_follow_through_a_schema_are_refused_by_every_way_in(monkeypatch):
    too_hard = "/e0/*/*[*/*/*[*/*/*[e1]]]"
    plain = {"schemas": [("e.xsd", mutual(20).encode())], "key": ["/e0/@a"]}
    async with testing.broker() as address, palio.connect(address) as client:
        await client.families.add("e", **plain)
        monkeypatch.setattr(making, "MOST_STEPS", 200_000)
        for asked in (
            client.families.add_paths("e", [too_hard]),
            client.families.change("e", paths=[too_hard]),
            client.families.add("other", **plain, paths=[too_hard]),
            client.families.add("other", **plain | {"key": [too_hard + "/@a"]}),
        ):
            with pytest.raises(palio.RequestRefused, match="Name elements instead of") as refused:
                await asked
            assert refused.value.error == "FamilyRefused"
        added = await client.families.add_paths("e", ["/e0/e1/@a"])
        assert [one["expression"] for one in added["paths"]] == ["/e0/e1/@a"]


@pytest.mark.parametrize("what", ["add", "put", "change", "show", "paths", "remove", "paths.add"])
@pytest.mark.parametrize("argument", [{}, {"name": 5}, {"name": "card", "colour": "red"}, {"name": "cart"}])
async def test_requests_that_cannot_be_read_or_are_about_nothing_are_refused(what, argument):
    async with testing.broker() as address, palio.connect(address) as client:
        with pytest.raises(palio.RequestRefused) as refused:
            await client._session.invoke(f"family.{what}", argument)
        assert refused.value.error in ("WrongFamilyRequest", "UnknownFamily", "FamilyRefused")
        assert await client.families.ls() == []


async def test_records_that_mean_nothing_do_not_keep_a_broker_from_the_others():
    broker = testing.broker()
    async with broker as address, palio.connect(address) as client:
        sharing = broker.running.sharing
        await sharing.put(("family", "odd", b"x"), ("family.path", "odd", b"x"))
        await client.families.add("card", **WANTED)
        assert [one["name"] for one in await client.families.ls()] == ["card"]
        await client.publish_document(card())
        await sharing.put(("family", "card", b"x"))
        assert await client.families.ls() == []


async def test_rights_say_who_adds_paths_and_who_sees_what(tmp_path):
    world = World(tmp_path)
    world.add("maker", None, None, "families")
    world.add("desk", None, 'xml.family = "card"', "paths")
    world.add("reader", None, 'xml.family = "card"')
    world.add("other", None, 'xml.family = "order"', "paths")
    async with world.broker() as address:
        clients = {name: await palio.connect(address, token=world.tokens[name]) for name in world.tokens}
        await clients["maker"].families.add("card", **WANTED)
        for name in ("reader", "desk", "other"):
            for doing in ("add", "change", "remove"):
                arguments = WANTED if doing == "add" else {}
                with pytest.raises(palio.NotAllowed, match="needs the right 'families'"):
                    await getattr(clients[name].families, doing)("card", **arguments)
        await clients["desk"].families.add_paths("card", ["/card/stock"])
        with pytest.raises(palio.NotAllowed, match="needs the right 'paths'"):
            await clients["reader"].families.add_paths("card", ["/card/stock"])
        assert len(await clients["reader"].families.ls()) == 1
        assert await clients["other"].families.ls() == []
        for doing in ("show", "paths"):
            with pytest.raises(palio.RequestRefused, match="there is none yet"):
                await getattr(clients["other"].families, doing)("card")
        with pytest.raises(palio.RequestRefused, match="there is none yet"):
            await clients["other"].families.add_paths("card", ["/card/stock"])
        for client in clients.values():
            await client.close()


def test_the_client_without_an_event_loop_has_them():
    with testing.broker() as address, palio.sync.connect(address) as client:
        client.families.add("card", **WANTED)
        client.families.add_paths("card", ["/card/stock"])
        assert client.families.change("card", paths=["/card/code"])["revision"] == 2
        assert [one["name"] for one in client.families.ls()] == ["card"]
        assert len(client.families.show("card")["schemas"]) == 1
        assert client.families.paths("card", all=True)["others"] == []
        client.families.remove("card")
        assert client.families.ls() == []


async def test_a_path_that_was_taken_away_by_force_is_added_again_by_the_next_subscription():
    async with testing.broker() as address, palio.connect(address) as client:
        await client.families.add("card", **WANTED)
        text = 'family card where xpath("/card/stock") > 5'
        await client.subscribe(text)
        await client.families.change("card", without=["/card/stock"], force=True)
        subscription = await client.subscribe(text)
        await client.publish_document(card().replace(b"</price>", b"</price><stock>7</stock>"))
        assert (await subscription.next(timeout=10))["/card/stock"] == 7


async def test_current_documents_are_held_against_a_change(monkeypatch):
    async with testing.broker(journal=True) as address, palio.connect(address) as client:
        await client.families.add("card", **WANTED)
        for code in ("c1", "c2", "c3"):
            await client.publish_document(card(code))
        await client.publish_document(card("c2", price=2.5))
        whole = CARD_SCHEMA.replace(b'type="xs:decimal"', b'type="xs:int"')
        dry = await client.families.change("card", [("card.xsd", whole)], dry=True)
        told = [one.partition(": ")[0] for one in dry["broken"]]
        assert told == [
            "The path /card/price would be one int, and is one float.",
            "The document 'c2' would be none of the family",
        ]
        assert (dry["documents"], dry["whole"]) == (3, True)
        monkeypatch.setattr(sampling, "MOST_SAMPLED", 1)
        dry = await client.families.change("card", [("card.xsd", whole)], dry=True)
        assert (len(dry["broken"]), dry["documents"], dry["whole"]) == (1, 1, False)


async def test_a_broker_that_begins_again_from_its_disk_knows_its_families(tmp_path):
    settings = Settings(name="a", listen="127.0.0.1:0", http="off", journal=True, data=str(tmp_path))
    shown = []
    for number in range(2):
        broker = BrokerServer(settings)
        await broker.start()
        async with palio.connect(f"palio://127.0.0.1:{broker.port}") as client:
            if not number:
                await client.families.add("card", **WANTED)
                await client.families.add_paths("card", ["/card/stock"])
            shown.append(await client.families.show("card"))
            await client.publish_document(card())
        await broker.stop()
    assert shown[0] == shown[1]


async def test_families_are_listed_page_by_page(monkeypatch):
    monkeypatch.setattr(requests, "PAGE", 2)
    async with testing.broker() as address, palio.connect(address) as client:
        names = [f"note{number}" for number in range(5)]
        for count, name in enumerate(names):
            assert [one["name"] for one in await client.families.ls()] == names[:count]
            await client.families.add(name, paths=[f"/{name}/to"], key=[f"/{name}/@id"])
        assert [one["name"] for one in await client.families.ls()] == names


async def test_others_are_served_while_a_schema_is_tried(monkeypatch):
    begun, go_on = threading.Event(), threading.Event()

    def slow(schemas):
        begun.set()
        go_on.wait(20)

    async with testing.broker() as address, palio.connect(address) as client:
        await client.families.add("card", **WANTED)
        monkeypatch.setattr(making, "try_schemas", slow)
        async with palio.connect(address) as other:
            adding = asyncio.create_task(other.families.add("other", **WANTED | {"root": "card"}))
            await asyncio.to_thread(begun.wait, 20)
            await client.publish({"n": 1})
            await client.publish_document(card())
            assert len(await client.families.ls()) == 1
            waiting = asyncio.create_task(client.families.add_paths("card", ["/card/stock"]))
            await client.families.add_paths("card", ["/card/price"])
            assert not adding.done()
            assert not waiting.done()
            go_on.set()
            assert len((await waiting)["paths"]) == 3
            with pytest.raises(palio.RequestRefused, match="are of 'card' already"):
                await adding


async def test_where_there_is_no_lxml_families_are_known_and_none_is_made(monkeypatch):
    async with testing.broker() as address, palio.connect(address) as client:
        made = await client.families.add("card", **WANTED)
        monkeypatch.setitem(sys.modules, "lxml", None)
        with pytest.raises(MissingDependency, match=r"palio\[xml\]"):
            await client.families.add("other", paths=["/other/a"], key=["/other/@id"])
        assert await client.families.ls() == [made]


async def test_what_is_left_of_a_family_goes_when_another_one_has_its_name():
    broker = testing.broker()
    async with broker as address, palio.connect(address) as client:
        for paths in (["/card/stock"], ["/card/stock", "/card/code"]):
            await client.families.add("card", **WANTED)
            await client.families.add_paths("card", paths)
            assert len((await client.families.show("card"))["paths"]) == 2 + len(paths)
            assert len(broker.running.sharing.of("family.path")) == len(paths)
            await client.families.remove("card")
            assert len(broker.running.sharing.of("family.path")) == len(paths)
        made = await client.families.add("card", **WANTED)
        assert len(made["paths"]) == 2
        assert broker.running.sharing.of("family.path") == {}
