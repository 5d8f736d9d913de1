"""One function from (text, dialect) to a filter."""

import re
from pathlib import Path

import pytest

import palio
from palio.language import DIALECTS, PALIO, UnknownDialect, WrongExpression, read_filter

ACME = palio.Filter.parse('symbol = "ACME" and price > 100')
TEXTS = {
    "palio": 'symbol = "ACME" and price > 100',
    "jms": "symbol = 'ACME' AND price > 100",
    "cloudevents": '[{"exact": {"symbol": "ACME"}}, {"palio": "price > 100"}]',
}
# What these dialects say of every event is not about any attribute: a topic, and lists beside single values.
SAME = {
    "mqtt": ('a/+?symbol = "ACME"', 'topic matches "a/*" and symbol = "ACME"'),
    # Of `price > 100` CESQL says more: a string is cast.
    "cesql": ("symbol LIKE 'A%' AND EXISTS price", 'symbol starts with "A" and exists(price)'),
    "eventbridge": ('{"n": [{"exists": true}], "s": [null]}', "exists(n) and absent(s)"),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_says_the_same_in_its_own_way(dialect):
    text, meaning = SAME.get(dialect) or (TEXTS[dialect], str(ACME))
    assert read_filter(text, dialect) == palio.Filter.parse(meaning)


def test_without_a_dialect_it_is_our_own_language():
    found = read_filter(TEXTS[PALIO])
    assert found == ACME
    assert found.source == TEXTS[PALIO]  # so that what is wrong can be told in the words of whoever wrote it


def test_a_filter_is_itself_whatever_it_was_written_in():
    assert read_filter(ACME, "cloudevents") is ACME


@pytest.mark.parametrize("given", ["price > 100", ACME])
def test_an_unknown_dialect_is_told_which_ones_there_are(given):
    with pytest.raises(UnknownDialect) as caught:
        read_filter(given, "klingon")
    known = ", ".join(DIALECTS)
    assert str(caught.value) == f"The filter dialect 'klingon' is not supported; there are {known}."
    assert (caught.value.dialect, caught.value.known) == ("klingon", tuple(DIALECTS))
    assert isinstance(caught.value, palio.PalioError)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("price > 100", "$"),
        ('{"exact": {"a": "1"}}', "$"),
        ('[{"exact": {"a": "1"}}, {"not": 3}]', "$[1].not"),
        ('[{"exact": {"a": "1", "a": "2"}}]', "$.….a"),
        ("[" * 100_000, "$"),
    ],
)
def test_a_text_that_is_wrong_is_a_wrong_expression(text, path):
    with pytest.raises(WrongExpression) as caught:
        read_filter(text, "cloudevents")
    assert caught.value.path == path


# Where texts are read that Palio wrote itself, or that are part of its own code.
OWN_TEXTS = {
    "broker/documents/completing.py",
    "routing/documents/keeping.py",
    "routing/documents/beginning.py",
    "cli/bench/filters.py",
    "cli/demo/network.py",
    "client/detecting.py",
    "client/retroactive.py",
    "documents/selection.py",
    "language/dialects.py",
    "matching/index.py",
    "sim/cost/clients.py",
    "sim/faults/document_oracle.py",
    "sim/faults/script.py",
    "sim/faults/takers.py",
    "sim/overlay/world.py",
    "sim/reconfiguration/run.py",
    "sim/shared/world.py",
    "sim/workloads.py",
    "spark/lake/rewriting.py",
    "spark/lake/table.py",
    "spark/source/format.py",
    "spark/source/from_broker.py",
    "store/journal.py",
    "store/recovery.py",
}


def test_no_filter_comes_in_by_another_way():
    house = Path(palio.__file__).parent
    found = {
        file.relative_to(house).as_posix()
        for file in house.rglob("*.py")
        if "model" not in file.relative_to(house).parts
        and re.search(r"(?<!palio\.)(?<!`)(?<!>>> )Filter\.parse\b(?!`)", file.read_text())
    }
    assert found <= OWN_TEXTS
