"""Lines of files of filters: ids, texts, and what each is written in."""

import pytest

from palio import InvalidNotification
from palio.language import PALIO, WrittenEntry, WrongLine, read_entry, read_filter


@pytest.mark.parametrize(
    ("line", "dialect", "found"),
    [
        ("  price > 5 ", PALIO, WrittenEntry(7, "price > 5")),
        ("shop/+", "mqtt", WrittenEntry(7, "shop/+", "mqtt")),
        ('{"filter": "a = 1"}', PALIO, WrittenEntry(7, "a = 1")),
        ('{"id": "x", "filter": "a/+", "dialect": "mqtt"}', PALIO, WrittenEntry("x", "a/+", "mqtt")),
        ('{"id": 3, "filter": "a = 1", "dialect": "palio"}', "mqtt", WrittenEntry(3, "a = 1")),
        (
            '{"id": 3, "filter": {"a": [1]}, "dialect": "eventbridge"}',
            PALIO,
            WrittenEntry(3, '{"a":[1]}', "eventbridge"),
        ),
        ('{"a": [1]}', "eventbridge", WrittenEntry(7, '{"a": [1]}', "eventbridge")),
        ('{"id": 1, "filter": "a", "dialect": "klingon"}', PALIO, WrittenEntry(1, "a", "klingon")),
    ],
)
def test_a_line_says_what_it_is_written_in(line, dialect, found):
    assert read_entry(line, 7, dialect) == found


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"id": 5}', 'needs "filter"'),
        ('{"filter": 5}', 'needs "filter"'),
        ('{"filter": "a", "id": null}', "a string or an integer"),
        ('{"filter": "a", "id": true}', "a string or an integer"),
        ('{"filter": "a", "dialect": 5}', '"dialect" is the name'),
    ],
)
def test_a_line_that_is_wrong_is_told(line, problem):
    with pytest.raises(WrongLine, match=problem):
        read_entry(line, 7)
    with pytest.raises(InvalidNotification):
        read_entry("{", 7)


def test_other_things_than_filters_have_no_dialect():
    said = read_entry('{"id": 1, "pattern": "A[x = 1]", "dialect": "mqtt"}', 7, key="pattern")
    assert said == WrittenEntry(1, "A[x = 1]")


def test_what_a_line_says_is_a_filter():
    said = read_entry('{"filter": "a/+?n>5", "dialect": "mqtt"}', 1)
    assert read_filter(said.text, said.dialect) == read_filter('topic matches "a/*" and n > 5')
