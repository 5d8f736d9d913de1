"""History goes on in the lake: whoever reaches back behind the journal gets every event once, and in order.

Broker, store, lake and Spark are real; the journal is archived and trimmed as operators do it.
"""

import asyncio
import json
import random
import shutil
import signal
from pathlib import Path

import aiohttp
import msgspec
import pytest

import palio
import palio.spark
from palio.broker.access.rights import parse_rights, write_rights
from palio.broker.access.tokens import create_token
from palio.broker.broker import BrokerServer
from palio.broker.maintenance import trim_store
from palio.broker.settings import Peer, Security, Settings
from palio.model.errors import HistoryUnavailable
from palio.model.filter import Filter
from palio.routing.durable.desk import DurableSettings
from palio.spark import jobs
from palio.spark.errors import DataLoss, NameTaken
from palio.spark.lake.archiving import archive, reader_of
from palio.spark.lake.rewriting import compact, forget
from palio.store.lake.manifests import Lake
from palio.store.retention_holds import hold
from tests.cli.processes import broker_up
from tests.spark.filling import MIDNIGHT, fill
from tests.store.conftest import cluster, database  # noqa: F401 - the same databases

pytest.importorskip("pyspark", reason="pyspark is not installed")

QUICK = DurableSettings(tick=0.1, settle_within=0.02, page=64)


class Scene:
    """A broker with a store and a lake in a folder, and Spark to archive the one to the other."""

    def __init__(self, spark, folder, **settings):
        self.spark = spark
        self.folder = folder
        self.place = str(folder / "lake")
        usual = {"lake": self.place, "durable": QUICK, "data": str(folder / "data")}
        self.settings = Settings(listen="127.0.0.1:0", http="off", **({"name": "b"} | usual | settings))
        self.url = self.settings.store_url
        self.broker = None

    def fill(self, events, **options):
        """Events in the journal of a broker that does not run."""
        return fill(self.url, events, **options)

    def let_go(self, upto=None):
        """Archive all, and let the journal go; the broker does not run."""
        archive(self.spark, self.url, self.place, rows_per_task=10_000)
        return trim_store(self.url, "b", upto).journal.trimmed

    async def __aenter__(self):
        self.broker = BrokerServer(self.settings)
        await self.broker.start()
        return self

    async def __aexit__(self, *problem):
        await self.broker.stop()

    @property
    def address(self):
        return f"palio://127.0.0.1:{self.broker.port}"

    def connect(self, **options):
        return palio.connect(self.address, **options)


def numbered(count, first=0):
    return [{"class": f"c{n % 3}", "n": n, "x": n % 7} for n in range(first, first + count)]


async def take(subscription, count):
    """The numbers of so many events, acknowledged."""
    found = []
    for _ in range(count):
        event = await subscription.next(timeout=20)
        await event.ack()
        found.append(event["n"])
    return found


def prepared(spark, folder, count, upto):
    """A folder with so many events in a lake, a second apart, and a journal that begins with a later one."""
    scene = Scene(spark, folder)
    scene.fill(numbered(count))
    assert scene.let_go(upto) == upto
    return folder


@pytest.fixture(scope="module")
def long_past(spark, tmp_path_factory):
    return prepared(spark, tmp_path_factory.mktemp("long"), 1_000, 900)


@pytest.fixture(scope="module")
def short_past(spark, tmp_path_factory):
    return prepared(spark, tmp_path_factory.mktemp("short"), 500, 400)


@pytest.fixture
def past(spark, long_past, tmp_path):
    """A broker whose journal begins with number 900 of 1,000, a second apart; the rest is in the lake."""
    shutil.copytree(long_past, tmp_path, dirs_exist_ok=True)
    return Scene(spark, tmp_path)


async def test_all_of_history_then_the_present(past):
    async with past as scene, scene.connect() as client:
        history = await client.subscribe("n >= 0", durable="desk", since="all")
        publishing = asyncio.create_task(publish(client, numbered(100, 1_000)))
        assert await take(history, 1_100) == list(range(1_100))
        await publishing
        assert history.statistics().dropped == {}
        with pytest.raises(TimeoutError):
            await history.next(timeout=0.3)


async def publish(client, events):
    for event in events:
        await client.publish(event)


async def test_since_a_moment_a_position_and_for_whoever_looks_once(past):
    async with past as scene, scene.connect() as client:
        some = await client.subscribe("x = 3", since=MIDNIGHT + 500)
        wanted = [n for n in range(500, 1_000) if n % 7 == 3]
        assert await take(some, len(wanted)) == wanted
        after = await client.subscribe("true", since={"b": 890})
        assert await take(after, 110) == list(range(890, 1_000))
        survey = await client.survey("x = 3", buckets=10, since=MIDNIGHT, until=MIDNIGHT + 1_000)
        assert (survey.count, len(survey.samples), survey.missing) == (143, 5, ())
        assert sum(survey.histogram) == 143
        assert min(survey.histogram) >= 14
        replay = client.replay("x = 3", since=MIDNIGHT + 500)
        assert [event["n"] async for event in replay] == wanted
        assert replay.missing == ()


async def test_what_is_forgotten_does_not_come_back(past, spark):
    small = msgspec.structs.replace(QUICK, outbox=100)
    past.settings = msgspec.structs.replace(past.settings, durable=small)
    async with past as scene, scene.connect() as client:
        history = await client.subscribe("n < 950", durable="desk", since="all", in_flight=10)
        assert await take(history, 5) == [0, 1, 2, 3, 4]
        await asyncio.to_thread(forget, spark, scene.place, Filter.parse("n >= 500 and n < 800"))
        await asyncio.to_thread(compact, spark, scene.place)
        assert await take(history, 645) == [*range(5, 500), *range(800, 950)]
        fresh = await client.subscribe("n >= 450 and n < 850", since="all")
        assert await take(fresh, 100) == [*range(450, 500), *range(800, 850)]


async def test_who_may_not_see_it_does_not_see_it_in_the_lake(spark, tmp_path):
    access = tmp_path / "access"
    scene = Scene(spark, tmp_path, security=Security(authentication=True, folder=str(access)))
    scene.fill(numbered(300))
    scene.let_go(250)
    tokens = {}
    for name, sees in (("all", "true"), ("few", "x = 3")):
        write_rights(access, name, parse_rights("true", sees, (), name))
        tokens[name] = create_token(access, name, now=0.0)[1]
    few = [n for n in range(300) if n % 7 == 3]
    async with scene:
        for name, wanted in (("all", list(range(300))), ("few", few)):
            async with scene.connect(token=tokens[name]) as client:
                history = await client.subscribe("n >= 0", durable="desk", since="all")
                assert await take(history, len(wanted)) == wanted
                assert (await client.survey("n >= 0")).count == len(wanted)
                assert [event["n"] async for event in client.replay("true")] == wanted


async def test_a_lake_that_cannot_be_read_is_said_and_nothing_is_passed_over(past, caplog):
    files = sorted(Path(past.place).rglob("*.parquet"))
    for file in files:
        file.rename(file.with_suffix(".away"))
    async with past as scene, scene.connect() as client:
        history = await client.subscribe("n >= 0", durable="desk", since="all")
        with pytest.raises(HistoryUnavailable, match=r"cannot be read .*No such file") as found:
            await history.next(timeout=20)
        assert found.value.broker == "b"
        survey = await client.survey("n >= 0")
        assert survey.missing == ("b",)
        replay = client.replay("n >= 0")
        assert [event async for event in replay] == []
        assert replay.missing == ("b",)
        assert scene.broker.store.lake_statistics().failures >= 3
        assert caplog.text.count("What was asked for from the lake cannot be read") == 1
        await client.publish({"n": 1_000})
        for file in files:
            file.with_suffix(".away").rename(file)
        again = await client.subscribe("n >= 0", durable="desk")
        assert await take(again, 1_001) == list(range(1_001))
        assert (await client.survey("n >= 0")).missing == ()


async def test_event_streams_over_http_reach_back_and_say_why_they_cannot(past):
    past.settings = msgspec.structs.replace(past.settings, http="127.0.0.1:0")
    async with past as scene, aiohttp.ClientSession() as http:
        address = f"http://127.0.0.1:{scene.broker.http_port}/events?filter=x=3&since=all"
        async with http.get(f"{address}&wait=1") as stream:
            text = await stream.text()
        assert text.count("\ndata:") + text.startswith("data:") >= 143
        shutil.rmtree(past.place)
        async with http.get(address) as stream:
            text = await stream.text()
        assert "HistoryUnavailable" in text
        assert "There is no lake" in text


async def test_damaged_files_and_a_lake_of_somebody_else(past):
    damaged = max(Path(past.place).rglob("*.parquet"), key=lambda file: file.stat().st_size)
    damaged.write_bytes(b"PAR1" + b"\0" * 2_000 + b"PAR1")
    async with past as scene, scene.connect() as client:
        history = await client.subscribe("n >= 0", since="all")
        with pytest.raises(HistoryUnavailable, match="is damaged"):
            await take(history, 900)
        await client.publish({"n": -1})  # the broker is in order
    shutil.rmtree(past.place)
    async with past as scene, scene.connect() as client:
        with pytest.raises(HistoryUnavailable, match="There is no lake"):
            await (await client.subscribe("n >= 0", since="all")).next(timeout=20)


async def test_a_lake_that_ends_before_the_journal_begins_is_an_error(spark, tmp_path):
    scene = Scene(spark, tmp_path)
    scene.fill(numbered(50))
    archive(spark, scene.url, scene.place)
    hold(scene.url, "b", reader_of(Lake(scene.place).state()), -1)  # somebody has given up the lake
    scene.fill(numbered(30, 50))
    assert trim_store(scene.url, "b", 70).journal.trimmed == 70
    async with scene, scene.connect() as client:
        history = await client.subscribe("true", since="all")
        assert await take(history, 50) == list(range(50))
        with pytest.raises(HistoryUnavailable, match="up to 50, and the journal itself begins with 71"):
            await history.next(timeout=20)


async def test_nothing_comes_from_the_lake_of_another_journal_of_the_same_name(spark, tmp_path):
    scene = Scene(spark, tmp_path)
    scene.fill(numbered(50))
    archive(spark, scene.url, scene.place)
    other = Scene(spark, tmp_path / "other", lake=scene.place)
    other.fill(numbered(80, 100))
    trim_store(other.url, "b", 70)
    async with other, other.connect() as client:
        history = await client.subscribe("true", since="all")
        with pytest.raises(HistoryUnavailable, match="up to 0, and the journal itself begins with 71"):
            await history.next(timeout=20)


async def test_a_journal_that_was_never_archived_begins_where_it_begins(spark, tmp_path):
    scene = Scene(spark, tmp_path, lake=str(tmp_path / "elsewhere"))
    fill(f"sqlite:///{tmp_path}/palio.db", numbered(10), broker="c")
    archive(spark, f"sqlite:///{tmp_path}/palio.db", scene.settings.lake)
    scene.fill(numbered(20))
    trim_store(scene.url, "b", 15)
    async with scene, scene.connect() as client:
        assert await take(await client.subscribe("true", since="all"), 5) == [15, 16, 17, 18, 19]


async def test_the_home_may_be_another_broker_than_the_one_with_the_lake(past, tmp_path):
    async with past as origin:
        peers = (Peer(f"127.0.0.1:{origin.broker.port}"),)
        async with (
            Scene(past.spark, tmp_path / "home", name="c", lake="", peers=peers) as home,
            home.connect() as client,
        ):
            history = await client.subscribe("n >= 0", durable="desk", since="all", ready="network")
            await client.publish({"n": 1_000})
            assert sorted(await take(history, 1_001)) == list(range(1_001))


async def test_postgresql(spark, database, tmp_path):  # noqa: F811
    scene = Scene(spark, tmp_path, store=database)
    scene.fill(numbered(200))
    assert scene.let_go(150) == 150
    async with scene, scene.connect() as client:
        history = await client.subscribe("n >= 0", durable="desk", since="all")
        await client.publish(numbered(10, 200))
        assert await take(history, 210) == list(range(210))


@pytest.mark.slow
def test_a_broker_killed_in_the_middle_goes_on_where_it_was(past, environment, tmp_path):
    """Nothing is lost, nothing that was acknowledged comes again, and first deliveries keep their order."""
    arguments = ("--name", "b", "--data", past.settings.data, "--lake", past.place)
    seen, done = [], set()

    async def some(port, count):
        async with palio.connect(f"palio://127.0.0.1:{port}") as client:
            history = await client.subscribe("n >= 0", durable="desk", since="all", in_flight=20)
            for _ in range(count):
                event = await history.next(timeout=20)
                assert event["n"] not in done
                if event["n"] not in seen:
                    seen.append(event["n"])
                await event.ack(confirmed=True)
                done.add(event["n"])

    for count in (1, 150, 400):
        with broker_up(*arguments, environment=environment, folder=tmp_path) as (process, ready):
            asyncio.run(some(ready["port"], count))
            process.send_signal(signal.SIGKILL)
        (tmp_path / "ready.json").unlink()
    with broker_up(*arguments, environment=environment, folder=tmp_path) as (process, ready):
        asyncio.run(some(ready["port"], 1_000 - len(done)))
    assert seen == list(range(1_000))


async def test_any_subscription_gets_what_an_oracle_says(spark, tmp_path):
    """Days and classes, archives of all sizes, a cut anywhere, filters and times by chance, and live events."""
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    chance = random.Random(seed)
    scene = Scene(spark, tmp_path)
    published, time = [], MIDNIGHT
    for _ in range(3):
        several = [
            {"class": chance.choice("abcd"), "n": len(published) + n, "x": chance.randrange(20)}
            for n in range(chance.randrange(50, 400))
        ]
        step = chance.choice((0.5, 30.0, 900.0))
        scene.fill(several, at=time, step=step)
        published += [(time + step * n, one) for n, one in enumerate(several)]
        time += step * len(several) + chance.choice((-3_600.0, 0.0, 86_400.0))
        archive(spark, scene.url, scene.place, rows_per_task=chance.choice((10_000, 60)))
    head = len(published)
    trim_store(scene.url, "b", chance.choice((1, head // 2, head - 1, head)))
    async with scene, scene.connect() as client, scene.connect() as publisher:
        filters = ("true", "x < 3", 'class = "b" and x >= 10', "n >= 100 and not x = 5", "n < 0 or x = 19")
        wanted = [(filter, chance.choice((None, chance.choice(published)[0]))) for filter in filters]
        histories = [
            await client.subscribe(filter, durable=f"d{number}", since=since or "all")
            for number, (filter, since) in enumerate(wanted)
        ]
        live = [{"class": "b", "n": head + n, "x": n % 20} for n in range(100)]
        publishing = asyncio.create_task(publish(publisher, live))
        for (filter, since), history in zip(wanted, histories, strict=True):
            parsed = Filter.parse(filter)
            everything = [*published, *[(float("inf"), one) for one in live]]
            expected = [
                one["n"]
                for moment, one in everything
                if moment >= (since or 0.0) and parsed.matches(palio.Notification(one))
            ]
            assert await take(history, len(expected)) == expected, (filter, since)
        await publishing
        for history in histories:
            with pytest.raises(TimeoutError):
                await history.next(timeout=0.05)


# Without the setting: `palio spark reach-back`


def lines(result):
    return [json.loads(line)["n"] for line in result.stdout.splitlines() if line.startswith("{")]


@pytest.fixture
def unaware(spark, short_past, tmp_path):
    """A broker that does not know of the lake to which its journal is archived."""
    shutil.copytree(short_past, tmp_path, dirs_exist_ok=True)
    return Scene(spark, tmp_path, lake="")


async def test_a_table_and_a_subscription_that_have_everything_once(unaware):
    async with unaware as scene, scene.connect() as client:
        await client.publish(numbered(20, 500))

        def reach_back(**options):
            return palio.spark.reach_back(
                scene.spark, scene.place, scene.address, "x = 3", durable="desk", schema="n int", **options
            )

        past = await asyncio.to_thread(reach_back, since=MIDNIGHT + 100)
        await client.publish(numbered(20, 520))
        rows = sorted(row.n for row in await asyncio.to_thread(past.collect))
        follows = await client.subscribe("x = 3", durable="desk")
        wanted = [n for n in range(100, 540) if n % 7 == 3]
        assert rows + await take(follows, len(wanted) - len(rows)) == wanted
        assert rows[-1] < 500
        await follows.detach()
        with pytest.raises(NameTaken, match="already"):
            await asyncio.to_thread(reach_back)


async def test_the_job_hands_over_the_past_or_leaves_no_subscription(unaware, tmp_path):
    async with unaware as scene, scene.connect() as client:

        def reach_back(**options):
            return jobs.reach_back(
                scene.spark, scene.place, "x = 3", durable="desk", broker=scene.address, **options
            )

        def broken(event):
            raise InterruptedError

        with pytest.raises(InterruptedError):
            await asyncio.to_thread(reach_back, each=broken)
        assert await client.inspect("subs") == []
        events = []
        wanted = [n for n in range(100, 500) if n % 7 == 3]
        done = await asyncio.to_thread(reach_back, each=events.append, since=MIDNIGHT + 100)
        assert [event["n"] for event in events] == wanted
        assert (done.durable, done.events, done.output) == ("desk", len(wanted), None)
        with pytest.raises(NameTaken, match="already"):
            await asyncio.to_thread(reach_back)
        await client.publish({"n": 500, "x": 3})
        output = str(tmp_path / "past")
        anew = await asyncio.to_thread(reach_back, anew=True, output=output, since="all")
        assert (anew.events, anew.output) == (None, output)
        assert scene.spark.read.parquet(output).count() == len([n for n in range(500) if n % 7 == 3])
        assert await take(await client.subscribe("x = 3", durable="desk"), 1) == [500]


async def test_a_journal_that_does_not_reach_back_to_the_lake(unaware, spark):
    unaware.fill(numbered(100, 500))
    archive(spark, unaware.url, str(unaware.folder / "other"))
    trim_store(unaware.url, "b")  # which waits for the first lake
    hold(unaware.url, "b", reader_of(Lake(unaware.place).state()), -1)
    trim_store(unaware.url, "b")
    async with unaware as scene, scene.connect() as client:
        with pytest.raises(DataLoss, match="was to be read from 501 on, but begins with 601"):
            await asyncio.to_thread(
                palio.spark.reach_back, spark, scene.place, scene.address, "true", durable="desk"
            )
        assert await client.inspect("subs") == []


def test_the_command_shows_the_past_and_leaves_the_rest(unaware, command, environment, tmp_path):
    arguments = ("--name", "b", "--data", unaware.settings.data)
    with broker_up(*arguments, environment=environment, folder=tmp_path) as (_, ready):
        server = ("--server", f"127.0.0.1:{ready['port']}")
        lake = ("--lake", unaware.place)
        shown = command("spark", "reach-back", "x = 3", "--durable", "desk", *server, *lake)
        assert shown.exit_code == 0, shown.output
        assert lines(shown) == [n for n in range(500) if n % 7 == 3]
        assert "the subscription desk goes on from there" in shown.stderr
        command("pub", *server, "n=500", "x=3")
        rest = command("sub", "x = 3", "--durable", "desk", "--count", "1", "--timeout", "20s", *server)
        assert lines(rest) == [500]
        again = command("spark", "reach-back", "x = 3", "--durable", "desk", *server, *lake)
        assert (again.exit_code, "--anew" in again.stderr) == (3, True)
        output = tmp_path / "past"
        anew = ("--anew", "--output", str(output), "--since", "2023-11-15")
        assert command("spark", "reach-back", "--durable", "desk", *server, *lake, *anew).exit_code == 0
        assert unaware.spark.read.parquet(str(output)).count() == 500
        # What cannot be written ends the subscription, so that the name is free again.
        refused = command("spark", "reach-back", "--durable", "new", *server, *lake, "--output", str(output))
        assert refused.exit_code == 3, refused.output
        subscriptions = command("subs", "--json", *server).stdout.splitlines()
        assert [json.loads(row)["durable"] for row in subscriptions] == ["desk"]
