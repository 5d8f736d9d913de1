"""Filters of other languages at a live broker: wherever one is taken, and what can never match is refused."""

import pytest

import palio
import palio.sync
from palio import testing
from palio.language import DIALECTS, UnknownDialect, WrongDialectText

# What nothing can satisfy, in each language.
NEVER = {
    "palio": "n > 5 and n < 3",
    "cloudevents": '[{"exact": {"type": "a"}}, {"exact": {"type": "b"}}]',
    "eventbridge": '{"n": [{"exists": true}], "$or": [{"n": [null]}, {"n": [{"exists": false}]}]}',
    "mqtt": "shop/+?topic starts with 'till/'",
    "jms": "n > 5 AND n < 3",
    "cesql": "n LIKE 'a%' AND n LIKE 'b%'",
}
TOPIC = "shop/+?n>5"
OURS = palio.Filter.parse('topic matches "shop/*" and n > 5')


@pytest.fixture(scope="module")
def address():
    with testing.broker(journal=True) as address:
        yield address


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_what_can_never_match_is_refused(address, dialect):
    async with palio.connect(address) as client:
        with pytest.raises(palio.ContradictoryFilter) as caught:
            await client.subscribe(NEVER[dialect], dialect=dialect)
        assert caught.value.reason
        with pytest.raises(palio.ContradictoryFilter):
            await client.subscribe(NEVER[dialect], dialect=dialect, durable="never")
        with pytest.raises(palio.ContradictoryFilter):
            await client.survey(NEVER[dialect], dialect=dialect)
        with pytest.raises(palio.ContradictoryFilter):
            client.replay(NEVER[dialect], dialect=dialect)


async def test_each_method_that_takes_a_filter_takes_it_in_another_language(address):
    async with palio.connect(address, name="one") as client:
        desk = await client.subscribe(TOPIC, dialect="mqtt", durable="desk")
        assert desk.filter == OURS
        for number in (5, 6, 7):
            await client.publish({"topic": "shop/books", "n": number})
        assert [(await desk.next(timeout=10))["n"] for _ in range(2)] == [6, 7]
        assert (await client.survey(TOPIC, dialect="mqtt")).count == 2
        assert [event["n"] async for event in client.replay(TOPIC, dialect="mqtt")] == [6, 7]
        await desk.change(
            '{"topic": [{"prefix": "shop/"}], "n": [{"numeric": [">", 6]}]}', dialect="eventbridge"
        )
        assert desk.filter != OURS
        assert desk.filter.matches(palio.Notification({"topic": ["shop/a"], "n": 7}))
        # What brokers hold and tell is in our own language.
        [row] = [row for row in await client.inspect("subs") if row.get("durable") == "desk"]
        assert palio.Filter.parse(row["filter"]) == desk.filter
        await client.remove("desk")


def test_so_do_those_of_the_other_client(address):
    with palio.sync.connect(address, name="two") as client:
        desk = client.subscribe("till/+", dialect="mqtt", durable="till")
        client.publish({"topic": "till/a", "n": 1})
        assert desk.next(timeout=10)["n"] == 1
        assert client.survey("till/+", dialect="mqtt").count == 1
        assert [event["n"] for event in client.replay("till/+", dialect="mqtt")] == [1]
        desk.change("till/#", dialect="mqtt")
        client.remove("till")


async def test_what_is_wrong_is_told_in_the_words_of_who_wrote_it(address):
    async with palio.connect(address) as client:
        with pytest.raises(WrongDialectText) as caught:
            await client.survey("shop/+?n >> 5", dialect="mqtt")
        mistake = caught.value
        assert (mistake.text, mistake.column, mistake.dialect) == ("shop/+?n >> 5", 11, "mqtt")
        assert str(mistake).startswith("Column 11 (mqtt): ")
        for take in (client.survey, client.subscribe):
            with pytest.raises(UnknownDialect, match="there are palio, "):
                await take("a", dialect="klingon")
