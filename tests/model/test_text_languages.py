"""`like`, `regex`, texts that ignore case and networks: what they select, against other ways to say it."""

import ipaddress
import re

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from palio import Filter, FilterSyntaxError, FilterTooLarge, Notification
from palio.matching import MatchIndex
from palio.model import automaton, folding, questions, reading, regexp, regular, texts
from palio.model.decision import DecisionNode
from palio.model.effort import BREATH, Meter, metered
from palio.model.flips import EVERYTHING, NOTHING
from palio.model.networks import addresses, canonical_network
from palio.model.questions import InNetwork, Like, RegexMatches, like_of
from palio.model.texts import TextMistake
from palio.model.values import Kind
from tests.reference import in_network, like_as_regular_expression, python_regular_expression
from tests.slices import examples

# Like


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("A_%", ["AB", "A\n", "ABC", "A😀"], ["A", "BA", ""]),
        ("_", ["a", "/", "\U0010ffff"], ["", "ab"]),
        ("%a_c%", ["abc", "xabcx", "aacac"], ["ac", "abbc"]),
        ("a%b%c", ["abc", "a%b%c", "aXbYc"], ["abcd", "ab"]),
    ],
)
def test_like(pattern, yes, no):
    f = Filter.parse(f'x like "{pattern}"')
    assert [text for text in yes if not f.matches(Notification({"x": text}))] == []
    assert [text for text in no if f.matches(Notification({"x": text}))] == []


@pytest.mark.parametrize(
    ("like", "plain"),
    [
        ('x like ""', 'x = ""'),
        ('x like "abc"', 'x = "abc"'),
        ('x like "abc%"', 'x starts with "abc"'),
        ('x like "%abc"', 'x ends with "abc"'),
        ('x like "%abc%%"', 'x contains "abc"'),
        ('x like "%"', "exists(string x)"),
        ('x like "a#%b%" escape "#"', 'x starts with "a%b"'),
        ('x like "a!b"', 'x = "a!b"'),
        ('x like "_%_"', 'x like "__%"'),
        ('x regex "abc"', 'x = "abc"'),
        ('x regex "a|b"', 'x in ("a", "b")'),
        ('x regex "a[b-c](.|\\n|\\r)*"', 'x starts with "ab" or x starts with "ac"'),
        ('x regex ""', 'x = ""'),
        ('x = "5-6" ignoring case', 'x = "5-6"'),
        ('x = "aB" ignoring case', 'x in ("ab", "Ab", "aB", "AB")'),
        ('x in network "10.1.2.3/32"', 'x = "10.1.2.3"'),
        ('x in network "10.1.2.2/31"', 'x in ("10.1.2.2", "10.1.2.3")'),
        ('x in network "::/0" and x in network "0.0.0.0/0"', "false"),
    ],
)
def test_the_same_in_other_words(like, plain):
    one, other = Filter.parse(like), Filter.parse(plain)
    assert one == other
    assert hash(one) == hash(other)


@given(st.text("ab%_!", max_size=8), st.text("ab%_!", max_size=8))
def test_any_pattern_of_like(pattern, text):
    kept = like_of(pattern, None)
    assert like_of(kept, "!") == kept
    assert Like(kept).holds(text) == bool(
        re.fullmatch("".join({"%": ".*", "_": "."}.get(one, re.escape(one)) for one in pattern), text)
    )
    assert Like(kept).holds(text) == bool(re.fullmatch(like_as_regular_expression(kept), text))


# Regular expressions

_LEAVES = st.sampled_from("a b . [ab] [^a] [a-c-] \\. ^ $ c \\n - [\\]^-]".split())  # noqa: SIM905
_EXPRESSIONS = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}", "{0,2}"])).map(
            lambda pair: f"({pair[0]}){pair[1]}"
        ),
        inner.map("({})".format),
    ),
    max_leaves=8,
)


@examples(300)
@given(_EXPRESSIONS, st.lists(st.text("abc.^$-]\n\r", max_size=6), min_size=8, max_size=8))
def test_any_regular_expression_against_another_engine(pattern, texts):
    asked = RegexMatches(pattern)
    known = re.compile(python_regular_expression(pattern))
    for text in texts:
        assert asked.holds(text) == (known.fullmatch(text) is not None), (pattern, text)


@pytest.mark.parametrize(
    ("pattern", "at", "problem"),
    [
        ("a(b", 1, "never closed"),
        ("a)b", 1, "needs a `(`"),
        ("[ab", 0, "never closed"),
        ("[]", 0, "at least one"),
        ("[b-a]", 1, "goes backwards"),
        ("[a-b-c]", 4, "first or last"),
        ("[a[b]", 2, "written `\\[`"),
        ("*a", 0, "what is repeated"),
        ("a**", 2, "repeated again only in parentheses"),
        ("a+?", 2, "never lazy"),
        ("a{", 2, "Expected a count"),
        ("a{2", 3, "Expected `}`"),
        ("a{3,2}", 1, "not less than the first"),
        ("a{12345}", 2, "at most 4 digits"),
        ("a]", 1, "written `\\]`"),
        ("(?:a)", 1, "only group"),
        (r"\d", 0, "Write [0-9]"),
        (r"\b", 0, "is not known"),
        (r"\p{L}", 0, "version of Unicode"),
        (r"[\P{L}]", 1, "version of Unicode"),
        ("a\\", 1, "is not known"),
        ("x" * 1_025, 0, "at most 1,024 characters"),
        ("(" * 40 + ")" * 40, 33, "nested more than 32"),
        ("(a{1000}){1000}", 0, "has 1,000,000 places once it is written out; the limit is 1,024"),
        ("(a|b)*a(a|b){12}", 0, "more than 1,024 states"),
        ("[" + "".join(chr(300 + 2 * n) for n in range(700)) + "]{1,60}", 0, "for 1,401 classes of characters"),
    ],
)
def test_what_is_no_regular_expression_is_refused_at_its_character(pattern, at, problem):
    with pytest.raises(TextMistake) as caught:
        _ = RegexMatches(pattern).table
    assert caught.value.at == at
    assert problem in str(caught.value)
    assert str(caught.value).endswith(".")


# What hostile patterns take is counted in states and steps


@pytest.mark.parametrize(
    "pattern",
    [
        "x{1000}",
        "[a-z]{0,1000}",
        "(x?){1000}",
        "((x{30}){30}){30}",
        "(((){999}){999}){999}",
        "((a*)*)*" * 20,
        "(a|b)*a(a|b){9}",
        "(.*a){40}",
        "|".join(f"{chr(97 + i % 26)}{i}x*" for i in range(150)),
        "[" + "".join(f"{chr(300 + 2 * i)}" for i in range(900)) + "]{1,50}",
    ],
    ids=lambda pattern: pattern[:16],
)
def test_making_a_table_takes_bounded_work(pattern):
    pauses = 0

    def breathe() -> None:
        nonlocal pauses
        pauses += 1

    try:
        with metered(Meter(10**9, breathe)):
            states = len(regular.tabulate(regexp.shape_of(pattern), "This").table)
    except TextMistake:
        states = 0
    assert states <= regular.MAX_STATES + 2
    # It pauses as often as steps were made: for places and transitions, and to make the table small.
    assert pauses * BREATH <= 4 * regular.MAX_BUILDING


def test_reading_a_text_takes_one_step_a_character():
    steps = 0

    class Counted(tuple):
        def __getitem__(self, place):
            nonlocal steps
            steps += 1
            return super().__getitem__(place)

    table = RegexMatches("(a*)*(b|a)*c").table
    counted = type(table)(table.cuts, Counted(table.table), table.accepting)
    assert not regular.read_through(counted, "a" * 5_000)
    assert steps == 5_000


def test_all_tables_of_a_filter_together_are_bounded():
    with pytest.raises(FilterTooLarge, match=r"states of patterns or more.*8,192|8,192"):
        Filter.parse(" or ".join(f'x regex "y{{{990 + i}}}"' for i in range(9)))
    assert reading.MAX_TABLE_STATES == 8_192


# Ignoring case


def test_case_is_folded_character_by_character():
    for text, same, other in [
        ("straße", ["STRAẞE", "Straße", "ſtraße"], ["strasse", "STRASSE"]),
        ("kelvin", ["KELVIN", "\N{KELVIN SIGN}elvin"], ["kelvins"]),
        ("σας", ["ΣΑΣ", "σασ"], []),
        ("iı", ["Iı"], ["II", "İı"]),
        ("µ", ["μ", "Μ"], ["m"]),
    ]:
        f = Filter.parse(f'x = "{text}" ignoring case')
        assert [one for one in (text, *same) if not f.matches(Notification({"x": one}))] == []
        assert [one for one in other if f.matches(Notification({"x": one}))] == []


def test_families_are_those_of_the_folding():
    points = [chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000]
    cased = [one for one in points if one.casefold() != one or one.upper() != one]
    by_folding: dict[str, set[str]] = {}
    for one in cased:
        by_folding.setdefault(folding.fold(one), {folding.fold(one)}).add(one)
    for one in cased:
        family = folding.variants(one)
        assert set(family) == by_folding[folding.fold(one)]
        assert list(family) == sorted(family)


def test_what_ignores_case_is_for_strings():
    f = Filter.parse('x = "a" ignoring case')
    assert not f.matches(Notification({"x": b"a"}))
    assert 'of type int, which is never compared with "a"' in str(f.explain(Notification({"x": 5})))
    with pytest.raises(FilterSyntaxError, match="at most 1,024 characters"):
        Filter.parse(f'x = "{"a" * 1_025}" ignoring case')


# Networks


@st.composite
def networks(draw):
    version = draw(st.sampled_from((4, 6)))
    bits = 32 if version == 4 else 128
    groups = st.lists(st.sampled_from((0, 0, 1, 0xFF, 0x100, 0xFFFF, 0xA0B)), min_size=8, max_size=8)
    number = 0
    for group in draw(groups):
        number = number << 16 | group
    number >>= 128 - bits
    length = draw(st.integers(0, bits))
    kind = ipaddress.IPv4Network if version == 4 else ipaddress.IPv6Network
    network = kind((number >> (bits - length) << (bits - length), length))
    inside = []
    for _ in range(12):
        other = 0
        for group in draw(groups):
            other = other << 16 | group
        other >>= 128 - bits
        if draw(st.booleans()):
            other = int(network.network_address) | other & int(network.hostmask)
        inside.append(type(network.network_address)(other))
    return network, inside


@examples(60)
@given(networks())
def test_addresses_in_any_network(case):
    network, inside = case
    table = addresses(canonical_network(str(network)))
    for address in inside:
        groups = [f"{int(group, 16):x}" for group in address.exploded.split(":")] if ":" in str(address) else []
        for text in (str(address), address.exploded, str(address).upper(), ":".join(groups), f"{address}."):
            assert regular.read_through(table, text) == in_network(str(network), text), (network, text)


@pytest.mark.parametrize(
    "text", ["10.0.0.0", "10.0.0.0/33", "10.0.0/8", "1.2.3.4/8", "::1/64", "fe80::%e/64", "x/8", "/8", "::/٣"]
)
def test_what_is_no_network_is_refused(text):
    with pytest.raises(FilterSyntaxError, match=r"[.]$"):
        Filter.parse(f'x in network "{text}"')


def test_a_network_has_one_notation():
    assert Filter.parse('x in network "2001:DB8:0::/048"') == Filter.parse('x in network "2001:db8::/48"')
    assert canonical_network("::ffff:10.0.0.0/104") == "::ffff:a00:0/104"
    assert regular.read_through(addresses("::ffff:a00:0/104"), "::ffff:a00:1")


def test_networks_lie_within_each_other_as_their_prefixes_say():
    texts = ["10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "11.0.0.0/8"]
    texts += ["2001:db8::/32", "2001:db8:1::/48", "::/0"]
    for one in texts:
        for other in texts:
            first, second = (Filter.parse(f'ip in network "{text}"') for text in (one, other))
            wide, narrow = ipaddress.ip_network(one), ipaddress.ip_network(other)
            same = wide.version == narrow.version
            assert first.covers(second) is (same and narrow.subnet_of(wide))
            assert first.overlaps(second) is (same and narrow.overlaps(wide))


# Together


def test_the_index_answers_like_the_filters():
    patterns = ['like "%é_%"', 'regex "[a-é]+|x{2,40}"', 'regex "[^é]*"', '= "ΣÉ" ignoring case', 'like "_"']
    patterns += ['in network "10.0.0.0/8"', 'in network "2001:db8::/32"']
    patterns += ['has like "a_"', 'has "É" ignoring case']
    filters = {text: Filter.parse(text) for one in patterns for text in (f"x {one}", f"not x {one}")}
    index = MatchIndex(filters.items())
    values = ["", "é", "aéb", "xx", "x" * 41, "σé", "ςÉ", "😀"]
    values += ["10.1.2.3", "10.1.2.03", "2001:db8::1", "2001:db8:::"]
    for value in [*values, ["ab", "é"], ["É"], [], 5, b"x", None]:
        event = Notification({"x": value})
        expected = {text for text, filter in filters.items() if filter.matches(event)}
        assert set(index.match(event)) == expected, value


def test_a_table_that_says_all_or_nothing_is_no_question():
    assert Filter.parse('x regex "(.|\\n|\\r)*"') == Filter.parse("exists(string x)")
    assert Filter.parse('x like "%%"') == Filter.parse("exists(string x)")
    assert InNetwork("10.0.0.0/8") == InNetwork("10.0.0.0/8")


@pytest.mark.parametrize("text", ['x like "a_%"', 'x regex "a{1,400}b*"', 'x = "kß" ignoring case'])
def test_what_asks_for_tables_is_metered(text):
    for cache in (questions._like_table, questions._regex_table, questions._ignoring_table):
        cache.cache_clear()
    first, again = Meter(10**9), Meter(10**9)
    with metered(first):
        f = Filter.parse(text)
    with metered(again):
        g = Filter.parse(text)
    assert f == g
    assert first.spent == again.spent > regular.STATE_STEPS  # what was remembered counts as much


# One text


@examples(200)
@given(
    st.sampled_from((texts.Contains, texts.EndsWith)),
    st.sampled_from(
        [(Kind.STRING, alphabet) for alphabet in ("ab", "a/\0", "é\U0001f600a", "\U0010ffffa")]
        + [(Kind.BYTES, "a\xff\0")]
    ).flatmap(lambda one: st.tuples(st.just(one[0]), st.text(one[1], min_size=1, max_size=9))),
)
def test_the_automaton_of_one_text_is_that_of_the_general_way(question, about):
    kind, text = about
    tree = DecisionNode(question(text), EVERYTHING[kind], ())
    assert automaton.language(kind, tree) == automaton._of_product(kind, tree)


# What is known of a pattern without its automaton


def _without_a_shortcut(atom):
    """The set as points and ranges, if it is that: the automaton's own answer."""
    return automaton.as_flips(
        Kind.STRING, automaton.language(Kind.STRING, DecisionNode(atom, EVERYTHING[Kind.STRING], NOTHING))
    )


@examples(400)
@given(st.lists(st.sampled_from(["a", "b", "*", "*", "/", "/", "**/", "/**", "/*/"]), max_size=6).map("".join))
def test_globs_that_are_no_points_and_ranges(pattern):
    try:
        texts.check_glob(pattern)
    except TextMistake:
        reject()
    atom = texts.GlobMatches(pattern)
    ends = _without_a_shortcut(atom)
    assert not (atom.is_endless and ends is not None), pattern
    assert Filter.parse(f'x matches "{pattern}"').conjunctions[0].sides["x"].parts[Kind.STRING] == (
        DecisionNode(atom, EVERYTHING[Kind.STRING], NOTHING) if ends is None else ends
    )


@examples(300)
@given(st.text("ab%_", max_size=6))
def test_patterns_of_like_that_are_no_points_and_ranges(pattern):
    atom = Like(like_of(pattern, None))
    assert not (atom.is_endless and _without_a_shortcut(atom) is not None), pattern


@pytest.mark.parametrize("pattern", ["*a", "a*b", "a*", "*/*", "a/*", "**/a", "a/**/b", "*.*", "/a/*/b*"])
def test_most_globs_need_no_automaton(pattern, monkeypatch):
    monkeypatch.setattr(automaton, "_Product", None)
    one, other = Filter.parse(f'x matches "{pattern}"'), Filter.parse(f'not x matches "{pattern}"')
    assert not one.conjunctions[0].is_empty()
    assert not other.conjunctions[0].is_empty()
