"""Event patterns, against an evaluator that knows nothing of filters: JSON in, yes or no out."""

import fnmatch
import ipaddress
import json
import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio import Filter, FilterError, Notification
from palio.language import WrongDialectText, read_filter
from palio.language.eventbridge import parse_event_pattern
from tests.slices import examples


def selects(pattern: dict, event: dict) -> bool:
    for key, wanted in pattern.items():
        if key == "$or" and isinstance(wanted, list):
            if not any(selects(one, event) for one in wanted):
                return False
        elif isinstance(wanted, dict):
            inner = event.get(key)
            if not selects(wanted, inner if isinstance(inner, dict) else {}):
                return False
        elif not any(_alternative(one, event.get(key)) for one in wanted):
            return False
    return True


def _alternative(one, value) -> bool:
    if isinstance(value, dict):
        value = None  # only leaves are there
    if one is None:
        return value is None
    if isinstance(one, dict) and "exists" in one:
        return (value is not None) is one["exists"]
    values = value if isinstance(value, list) else [] if value is None else [value]
    return any(_single(one, each) for each in values)


def _single(one, value) -> bool:
    if not isinstance(one, dict):
        return _equal(one, value)
    ((matcher, content),) = one.items()
    if matcher == "anything-but":
        if isinstance(content, dict):
            ((inner, given),) = content.items()
            return not any(_single({inner: each}, value) for each in _several(given))
        return not any(_equal(each, value) for each in _several(content))
    if matcher == "numeric":
        signs = {"=": "__eq__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        pairs = zip(content[::2], content[1::2], strict=True)
        return all(getattr(float(value), signs[sign])(float(number)) for sign, number in pairs)
    if not isinstance(value, str):
        return False
    match matcher, content:
        case "prefix", {"equals-ignore-case": text}:
            return value.lower().startswith(text.lower())
        case "suffix", {"equals-ignore-case": text}:
            return value.lower().endswith(text.lower())
        case "prefix", _:
            return value.startswith(content)
        case "suffix", _:
            return value.endswith(content)
        case "equals-ignore-case", _:
            return value.lower() == content.lower()
        case "wildcard", _:
            return fnmatch.fnmatchcase(value, content)
        case "cidr", _:
            return bool(re.fullmatch(r"\d+\.\d+\.\d+\.\d+", value)) and (
                ipaddress.ip_address(value) in ipaddress.ip_network(content)
            )
    raise AssertionError(one)


def _several(content):
    return content if isinstance(content, list) else [content]


def _equal(one, value) -> bool:
    kinds = [bool if isinstance(x, bool) else str if isinstance(x, str) else float for x in (one, value)]
    return kinds[0] is kinds[1] and one == value


_TEXTS = st.sampled_from(("", "a", "b", "ab", "AB", "aab", "b/a", "10.0.0.1", "10.1.0.1", "a-b"))
_NUMBERS = st.sampled_from((0, 1, 2, 5, 0.5, 1.0, -1))
_SCALARS = st.one_of(_TEXTS, _NUMBERS, st.booleans())
_WILDCARDS = st.sampled_from(("*", "a*", "*b", "a*b", "*a*b*", "ab", "*/a", "b*a"))
_TEXT_MATCHERS = st.one_of(
    st.tuples(st.sampled_from(("prefix", "suffix", "equals-ignore-case")), _TEXTS),
    st.tuples(st.just("wildcard"), _WILDCARDS),
    st.tuples(st.sampled_from(("prefix", "suffix")), _TEXTS.map(lambda text: {"equals-ignore-case": text})),
).map(lambda pair: {pair[0]: pair[1]})
_EXCLUDING = st.one_of(
    _TEXTS,
    _NUMBERS,
    st.lists(_TEXTS, min_size=1, max_size=3),
    st.lists(_NUMBERS, min_size=1, max_size=3),
    st.tuples(
        st.sampled_from(("prefix", "suffix", "equals-ignore-case")),
        st.one_of(_TEXTS, st.lists(_TEXTS, min_size=1, max_size=2)),
    ).map(lambda pair: {pair[0]: pair[1]}),
    st.one_of(_WILDCARDS, st.lists(_WILDCARDS, min_size=1, max_size=3)).map(lambda one: {"wildcard": one}),
)
_ALTERNATIVES = st.one_of(
    _SCALARS,
    st.none(),
    _TEXT_MATCHERS,
    _EXCLUDING.map(lambda content: {"anything-but": content}),
    st.sampled_from(([">", 0], ["=", 1], ["<=", 0.5], [">", 0, "<=", 5], [">=", 1, "<", 2])).map(
        lambda content: {"numeric": content}
    ),
    st.booleans().map(lambda there: {"exists": there}),
    st.sampled_from(("10.0.0.0/16", "10.0.0.0/8")).map(lambda network: {"cidr": network}),
)
_MEMBERS = st.dictionaries(
    st.sampled_from("xy"), st.lists(_ALTERNATIVES, min_size=1, max_size=2), min_size=1, max_size=2
)
PATTERNS = st.one_of(
    _MEMBERS,
    st.tuples(_MEMBERS, _MEMBERS).map(lambda both: {**both[0], "detail": both[1]}),
    st.tuples(_MEMBERS, _MEMBERS, _MEMBERS).map(lambda all: {"$or": [all[0], {"detail": all[1]}], **all[2]}),
)
_VALUES = st.one_of(
    _SCALARS, st.lists(_TEXTS, max_size=3), st.lists(_NUMBERS.map(float), max_size=3), st.none()
)
_LEAVES = st.dictionaries(st.sampled_from("xy"), _VALUES)
_EVENTS = st.tuples(_LEAVES, _LEAVES).map(lambda both: {**both[0], "detail": both[1]})


@examples(400)
@given(PATTERNS, st.lists(_EVENTS, min_size=4, max_size=4))
def test_any_pattern_selects_what_it_says(pattern, events):
    f = parse_event_pattern(json.dumps(pattern))
    again = Filter.parse(str(f))
    for event in events:
        notification = Notification(event)
        assert not notification.unindexed
        assert f.matches(notification) == selects(pattern, event), event
        assert again.matches(notification) == f.matches(notification)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (
            '{"source": ["shop", "till"]}',
            [{"source": "till"}, {"source": ["x", "shop"]}],
            [{}, {"source": "Shop"}],
        ),
        ('{"detail": {"n": [5, true]}}', [{"detail": {"n": 5.0}}, {"detail": {"n": True}}], [{"n": 5}]),
        ('{"p": [{"prefix": {"equals-ignore-case": "K-"}}]}', [{"p": "k-1"}, {"p": "\u212a-"}], [{"p": "k"}]),
        ('{"f": [{"suffix": ".png"}]}', [{"f": "a.png"}], [{"f": "a.PNG"}]),
        ('{"f": [{"suffix": {"equals-ignore-case": ".png"}}]}', [{"f": "a.PNG"}], [{"f": "png"}]),
        ('{"w": [{"wildcard": "a*\\\\*"}]}', [{"w": "a/b*"}], [{"w": "a/b"}]),
        (
            '{"s": [{"anything-but": ["a", "b"]}]}',
            [{"s": "c"}, {"s": 5}, {"s": ["a", "c"]}],
            [{}, {"s": ["a"]}],
        ),
        ('{"n": [{"numeric": [">", 0, "<", 5]}]}', [{"n": 1}, {"n": [0, 4.5]}], [{"n": [0, 5]}, {"n": "1"}]),
        ('{"ip": [{"cidr": "2001:db8::/32"}]}', [{"ip": "2001:db8::7"}], [{"ip": "2001:db9::"}]),
        ('{"x": [null]}', [{}, {"x": None}], [{"x": ""}]),
        # The rest of the format's operators, in the order of its reference.
        (
            '{"city": ["Siena"], "day": ["Monday"]}',
            [{"city": "Siena", "day": "Monday"}],
            [{"city": "Siena"}, {"city": "Siena", "day": "Friday"}],
        ),
        ('{"s": [{"anything-but": "a"}]}', [{"s": "b"}, {"s": ""}], [{"s": "a"}, {}]),
        ('{"n": [{"anything-but": 5}]}', [{"n": 6}, {"n": "5"}], [{"n": 5}, {"n": 5.0}, {}]),
        ('{"n": [{"anything-but": [1, 2]}]}', [{"n": 3}, {"n": [1, 3]}], [{"n": 2}, {"n": [1, 2]}]),
        ('{"r": [{"anything-but": {"prefix": "us-"}}]}', [{"r": "eu-1"}, {"r": "US-1"}], [{"r": "us-1"}, {}]),
        (
            '{"r": [{"anything-but": {"prefix": ["us-", "eu-"]}}]}',
            [{"r": "ap-1"}],
            [{"r": "us-1"}, {"r": "eu-1"}],
        ),
        ('{"f": [{"anything-but": {"suffix": ".png"}}]}', [{"f": "a.jpg"}], [{"f": "a.png"}, {}]),
        (
            '{"f": [{"anything-but": {"suffix": [".png", ".jpg"]}}]}',
            [{"f": "a.gif"}],
            [{"f": "a.png"}, {"f": "a.jpg"}],
        ),
        (
            '{"s": [{"anything-but": {"equals-ignore-case": "open"}}]}',
            [{"s": "closed"}],
            [{"s": "open"}, {"s": "OPEN"}, {}],
        ),
        (
            '{"s": [{"anything-but": {"equals-ignore-case": ["open", "new"]}}]}',
            [{"s": "closed"}],
            [{"s": "Open"}, {"s": "NEW"}],
        ),
        ('{"p": [{"anything-but": {"wildcard": "*/lib/*"}}]}', [{"p": "/bin/a"}], [{"p": "/lib/a"}, {}]),
        (
            '{"p": [{"anything-but": {"wildcard": ["*/lib/*", "*/bin/*"]}}]}',
            [{"p": "/etc/a"}],
            [{"p": "/usr/lib/a"}, {"p": "/usr/bin/a"}],
        ),
        ('{"r": [{"prefix": "us-"}]}', [{"r": "us-1"}, {"r": ["eu-1", "us-1"]}], [{"r": "US-1"}, {}]),
        ('{"n": [""]}', [{"n": ""}], [{"n": " "}, {}]),
        ('{"n": ["Ada"]}', [{"n": "Ada"}], [{"n": "ada"}]),
        ('{"n": [{"equals-ignore-case": "ada"}]}', [{"n": "ADA"}, {"n": "Ada"}], [{"n": "Adam"}]),
        ('{"x": [{"exists": true}]}', [{"x": 0}, {"x": ""}, {"x": []}], [{}]),
        ('{"x": [{"exists": false}]}', [{}, {"y": 1}], [{"x": 0}]),
        ('{"d": {"x": [{"exists": false}]}}', [{}, {"d": {"y": 1}}], [{"d": {"x": False}}]),
        ('{"n": [100]}', [{"n": 100}, {"n": 100.0}, {"n": [1, 100]}], [{"n": "100"}, {"n": 101}]),
        ('{"n": [{"numeric": ["=", 100]}]}', [{"n": 100}, {"n": 100.0}], [{"n": "100"}, {"n": 101}]),
        ('{"n": [{"numeric": ["<", 10]}]}', [{"n": 9.5}, {"n": -1}], [{"n": 10}]),
        ('{"n": [{"numeric": ["<=", 10]}]}', [{"n": 10}], [{"n": 10.5}]),
        ('{"n": [{"numeric": [">", 10]}]}', [{"n": 10.5}], [{"n": 10}]),
        ('{"n": [{"numeric": [">=", 10]}]}', [{"n": 10}], [{"n": 9}, {"n": "10"}]),
        ('{"ip": [{"cidr": "10.0.0.0/24"}]}', [{"ip": "10.0.0.255"}], [{"ip": "10.0.1.0"}, {"ip": "10.0.0"}]),
        (
            '{"$or": [{"city": ["Siena"]}, {"day": ["Monday"]}]}',
            [{"city": "Siena"}, {"day": "Monday", "city": "Lucca"}],
            [{"city": "Lucca"}, {}],
        ),
        (
            '{"d": {"$or": [{"x": [{"numeric": [">", 1]}]}, {"y": ["a"]}], "z": [1]}}',
            [{"d": {"x": 2, "z": 1}}, {"d": {"y": "a", "z": 1}}],
            [{"d": {"x": 2}}, {"x": 2, "z": 1}],
        ),
        ('{"w": [{"wildcard": "a/*/c.*"}]}', [{"w": "a/b/c.txt"}, {"w": "a/b/b/c."}], [{"w": "a/c.txt"}]),
        ('{"w": [{"wildcard": "a\\\\\\\\*"}]}', [{"w": "a\\b"}], [{"w": "a*"}]),
        ('{"w": [{"wildcard": "a*\\\\**"}]}', [{"w": "ab*c"}, {"w": "a*"}], [{"w": "abc"}]),
        (
            '{"w": ["a", {"prefix": "b"}, {"suffix": "z"}, {"numeric": ["=", 7]}, {"exists": false}]}',
            [{"w": "a"}, {"w": "bc"}, {"w": "xyz"}, {"w": 7}, {}],
            [{"w": "ab"}, {"w": 8}],
        ),
    ],
)
def test_what_the_format_documents(pattern, yes, no):
    f = read_filter(pattern, "eventbridge")
    assert [event for event in yes if not f.matches(Notification(event))] == []
    assert [event for event in no if f.matches(Notification(event))] == []


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("", 1, "not JSON"),
        ('{"a": [}', 8, "not JSON"),
        ("[1]", 1, "expected an object"),
        ("{}", 1, "expected an object"),
        ('{"a": "x"}', 7, "in `$.a`, expected an array"),
        ('{"a": []}', 7, "expected an array"),
        ('{"b": [1], "a": [[1]]}', 18, "in `$.a[0]`, an array has no arrays"),
        ('{"a": {"b": [1, {"like": 5}]}}', 17, "in `$.a.b[1]`, there is no 'like'; there are anything-but"),
        ('{"a": [{"prefix": "x", "suffix": "y"}]}', 8, "one member"),
        ('{"a": [{"prefix": 5}]}', 19, "in `$.a[0].prefix`, expected a string"),
        ('{"a": [{"prefix": {"x": 5}}]}', 19, "equals-ignore-case"),
        ('{"a": [{"exists": 1}]}', 19, "true or false"),
        ('{"a": [{"numeric": [">"]}]}', 20, "a sign and a number"),
        ('{"a": [{"numeric": ["!", 5]}]}', 21, "one of ="),
        ('{"a": [{"numeric": [">", 6e9]}]}', 26, "from -5.0e9"),
        ('{"a": [{"numeric": ["<", 1, ">", 0]}]}', 20, "a lower limit and then an upper one"),
        ('{"a": [{"anything-but": []}]}', 25, "at least one"),
        ('{"a": [{"anything-but": [1, "x"]}]}', 25, "strings only, or numbers only"),
        ('{"a": [{"anything-but": [true]}]}', 26, "a string or a number"),
        ('{"a": [{"anything-but": {"cidr": "10.0.0.0/8"}}]}', 25, "one of prefix, suffix"),
        ('{"a": [{"wildcard": "a**"}]}', 21, "side by side"),
        ('{"a": [{"wildcard": "a\\\\b"}]}', 21, "backslash"),
        ('{"a": [{"cidr": "10.0.0.1/8"}]}', 17, "the network is 10.0.0.0/8"),
        ('{"$or": [{"a": [1]}]}', 9, "two patterns or more"),
        ('{"": [1]}', 6, "cannot be empty"),
        ('{"a": [{"prefix": {"equals-ignore-case": "' + "a" * 300 + '"}}]}', 19, "at most 1,024 characters"),
        ('{"a": [{"wildcard": "' + "*ab" * 700 + '"}]}', 21, "at most 1,024 characters"),
        ('{"a": [99999999999999999999]}', 8, "64 bit"),
        ('{"a": ' * 40 + "[1]" + "}" * 40, 199, "nested more than 32"),
    ],
)
def test_a_mistake_is_told_with_its_path_and_column(text, column, problem):
    with pytest.raises(WrongDialectText) as caught:
        parse_event_pattern(text)
    assert problem in caught.value.problem
    assert caught.value.column == column
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"a": [{"wildcard": "*a" * 400}]}),
        json.dumps({"a": [{"anything-but": {"prefix": [f"{n:04}" for n in range(500)]}}]}),
        json.dumps({"a": list(range(5_000))}),
        json.dumps({"$or": [{"a": [1]}, {"b": [1]}], "x": {"$or": [{"c": [1]}, {"d": [1]}]}} | {"z": [1]}),
        "[" * 100_000,
        '{"a":' * 5_000,
        '{"a": [{"equals-ignore-case": "' + "k" * 5_000 + '"}]}',
    ],
    ids=lambda text: text[:30],
)
def test_hostile_patterns_are_read_or_refused(text):
    with suppress(FilterError):
        str(parse_event_pattern(text))
