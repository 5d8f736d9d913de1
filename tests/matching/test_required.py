"""What is known of a pattern's texts holds for every one of them, and is what somebody would look for."""

import ipaddress
import random

import pytest

import palio
from palio.matching import oracle
from palio.matching.leads import Literals, literals
from palio.matching.required import required
from palio.model import networks
from palio.model.folding import folded_ascii
from palio.model.questions import IgnoringCase, Like, RegexMatches, variants_of
from palio.model.regexp import shape_of
from palio.model.regular import Chain, Letter, OneOf, Repeated
from tests.slices import sliced


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("error.*", Literals(prefix="error")),
        (".*error", Literals(suffix="error")),
        (".*error.*", Literals(factors=("error",))),
        ("[0-9]{3}-error-[a-z]*", Literals(factors=("-error-",))),
        ("(foo|bar).*", Literals(place="begins", one_of=("foo", "bar"))),
        (".*(foo|bar).*", Literals(place="within", one_of=("foo", "bar"))),
        (".*(foo|bar)", Literals(place="ends", one_of=("foo", "bar"))),
        ("GET|POST", Literals(place="whole", one_of=("GET", "POST"))),
        ("colou?r", Literals(place="whole", one_of=("color", "colour"))),
        ("(error: )+[0-9]*", Literals(prefix="error: ")),
        ("[a-z]*", Literals()),
        ("a.*b", Literals(prefix="a", suffix="b")),
        ("", Literals(place="within")),
        (".*(foo[a-z]*|bar).*", Literals(place="within", one_of=("foo", "bar"))),
        (".*(foo.*|)", Literals()),
    ],
)
def test_what_a_regular_expression_is_found_by(pattern, found):
    assert literals(RegexMatches(pattern)) == found


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("abc%def", Literals("abc", "def")),
        ("%abc%def%", Literals(factors=("abc", "def"))),
        ("a_c%def_%", Literals("a", "", ("def",))),
        ("%a%b%", Literals()),
        ("!%!%!%%x", Literals("%%%", "x")),
    ],
)
def test_what_a_pattern_of_sql_is_found_by(pattern, found):
    assert literals(Like(pattern)) == found


@pytest.mark.parametrize(
    ("text", "folded"),
    [("Palio", "palio"), ("K-9 \u017fea", "k-9 sea"), ("日本 A", "日本 a"), ("Café", None), ("ß", None)],
)
def test_case_is_folded_where_letters_are_those_of_ascii(text, folded):
    assert folded_ascii(variants_of(text)) == folded
    if folded is None:
        assert literals(IgnoringCase(variants_of(text))).folded == ""


def test_an_odd_choice_of_characters_is_not_folded():
    for variants in (("Aa", "b"), ("kK",), ("\u212a",), ("Ss",), ("AaB",), ("A",)):
        assert folded_ascii(variants) is None


# Every text of a pattern has what is required


def drawn_text(draw: random.Random, shape) -> str:
    """A text that the shape accepts."""
    match shape:
        case Letter(ranges):
            low, high = draw.choice(ranges)
            return chr(draw.randrange(low, min(high, low + 40)))
        case Chain(parts):
            return "".join(drawn_text(draw, part) for part in parts)
        case OneOf(parts):
            return drawn_text(draw, draw.choice(parts))
        case Repeated(part, least, most):
            times = draw.randint(least, least + 3 if most is None else most)
            return "".join(drawn_text(draw, part) for _ in range(times))


def drawn_pattern(draw: random.Random, depth: int) -> str:
    pieces = []
    for _ in range(draw.randint(1, 5)):
        piece = draw.choice(
            ("abc", "xyz", "a", "b", ".", "[ab]", "[a-c]", "[^a]", "é", "0123456789" * 2, "[a-z]", "1")
        )
        if depth and draw.random() < 0.4:
            piece = f"({drawn_pattern(draw, depth - 1)})"
        elif len(piece) > 1 and piece[0] != "[":
            piece = f"({piece})" if draw.random() < 0.5 else piece
        pieces.append(piece + draw.choice(("", "", "", "*", "+", "?", "{2}", "{1,3}", "{5}", "{6,}")))
        if draw.random() < 0.15:
            pieces.append("|")
    return "".join(pieces)


@pytest.mark.parametrize("seed", sliced(range(30), 3))
def test_each_text_of_a_pattern_has_what_is_required(seed):
    draw = random.Random(seed)
    for _ in range(100):
        pattern = drawn_pattern(draw, 2)
        shape = shape_of(pattern)
        known = required(shape)
        for _ in range(20):
            text = drawn_text(draw, shape)
            assert known.texts is None or text in known.texts, (pattern, text)
            assert any(text.startswith(one) for one in known.begins), (pattern, text)
            assert any(text.endswith(one) for one in known.ends), (pattern, text)
            for several in known.within:
                assert any(one in text for one in several), (pattern, text, several)


# Networks


@pytest.mark.parametrize(
    ("network", "found"),
    [
        ("10.0.0.0/8", ("10.",)),
        ("192.168.0.0/16", ("192.168.",)),
        ("192.168.4.0/23", ("192.168.4.", "192.168.5.")),
        ("10.1.2.3/32", ("10.1.2.3",)),
        ("10.1.2.4/31", ("10.1.2.4", "10.1.2.5")),
        ("0.0.0.0/0", ()),
        ("::/0", ()),
        ("2001:db8::/32", ("2001:db8:",)),
        ("fe80::/10", ("fe8", "fe9", "fea", "feb")),
        ("fc00::/7", tuple(f"f{one}" for one in "cd")),
        ("::1/128", ("::1",)),
        ("::/8", ()),
        ("2001:db8::/127", ("2001:db8:",)),
    ],
)
def test_how_the_addresses_of_a_network_begin(network, found):
    assert networks.beginnings(network) == found
    assert len(found) <= networks.MAX_BEGINNINGS


@pytest.mark.parametrize("seed", sliced(range(20), 2))
def test_every_address_of_a_network_begins_so(seed):
    draw = random.Random(seed)
    for _ in range(100):
        bits, kind = draw.choice(((32, ipaddress.IPv4Network), (128, ipaddress.IPv6Network)))
        length = draw.randint(0, bits)
        address = draw.getrandbits(bits)
        for _ in range(draw.randint(0, 3)):  # groups of zeros
            at = draw.randrange(bits)
            address &= ~(((1 << draw.randint(1, bits)) - 1) << at)
        network = kind((address >> (bits - length) << (bits - length), length))
        text = networks.canonical_network(str(network))
        found = networks.beginnings(text)
        for number in {
            0,
            network.num_addresses - 1,
            *(draw.randrange(network.num_addresses) for _ in range(20)),
        }:
            one = str(network[number])
            if "." in one and ":" in one:
                continue  # IPv4 within IPv6, which Pythons write differently
            assert palio.Filter.parse(f'x in network "{text}"').matches(palio.Notification({"x": one})), (
                text,
                one,
            )
            assert not found or one.startswith(found), (text, one)


# In the index

WORDS = ("error", "warning", "Palio", "kiosk", "straße", "café", "ab", "x", "10.1.2.3", "2001:db8::1")


def drawn_condition(draw: random.Random) -> str:
    word = draw.choice(WORDS)
    name = draw.choice("xy")
    match draw.randrange(6):
        case 0:
            return f'{name} = "{draw.choice((word, word.upper(), word.title()))}" ignoring case'
        case 1:
            like = "".join(draw.choice((draw.choice(WORDS), "%", "%", "_")) for _ in range(draw.randint(1, 4)))
            return f'{name} like "{like}"'
        case 2:
            pattern = drawn_pattern(draw, 1).replace("\\", "")
            return f'{name} regex "{pattern}"'
        case 3:
            parts = (".*", "(error|warning)", "[Pp]alio", "kiosk?", "[0-9]+", "caf[eé]", "(ab)+", ".")
            return f'{name} regex "{"".join(draw.choice(parts) for _ in range(draw.randint(1, 4)))}"'
        case 4:
            chosen = draw.choice(
                ("10.0.0.0/8", "10.1.2.0/23", "2001:db8::/32", "::/0", "0.0.0.0/0", "fe80::/10")
            )
            return f'{name} in network "{chosen}"'
        case _:
            return f'{name} contains "{word[:4]}"'


def drawn_filter(draw: random.Random) -> str:
    found = ""
    for _ in range(draw.randint(1, 3)):
        text = drawn_condition(draw)
        if draw.random() < 0.2:
            text = f"{text[0]} has {text[2:]}"
        if draw.random() < 0.2:
            text = f"not {text}"
        found = f"({found}) {draw.choice(('and', 'or'))} ({text})" if found else text
    return found


def drawn_value(draw: random.Random):
    def text() -> str:
        pieces = (
            *WORDS,
            *WORDS,
            "Error",
            "PALIO",
            "\u212aio\u017fk",
            "STRASSE",
            "\u1e9e",
            "aba",
            "color",
            "\n",
        )
        return "".join(draw.choice(pieces) for _ in range(draw.randint(0, 3)))

    match draw.randrange(5):
        case 0:
            return [text() for _ in range(draw.randint(0, 3))]
        case 1:
            return draw.choice(
                ("10.1.2.3", "10.1.3.255", "2001:db8::1", "fe80::1", "fea0::", "::", "010.1.2.3")
            )
        case 2:
            return draw.choice((1, True, b"error", 2.5))
        case _:
            return text()


@pytest.mark.parametrize("seed", sliced(range(60), 6))
def test_patterns_case_and_networks_are_found_as_the_oracle_finds_them(seed, tmp_path):
    draw = random.Random(seed)
    filters = {}
    while len(filters) < draw.choice((4, 30, 80)):
        text = drawn_filter(draw)
        try:
            filters[text] = palio.Filter.parse(text)
        except palio.FilterTooLarge:
            continue
        except palio.FilterSyntaxError as problem:
            if "more than 1,024 states" not in str(problem):
                raise
    index, truth = palio.MatchIndex(filters.items() if seed % 2 else ()), oracle.MatchIndex(filters.items())
    for text, filter in filters.items():
        if text not in index:
            index.add(text, filter)
    for turn in range(3):
        events = [
            palio.Notification({name: drawn_value(draw) for name in "xy" if draw.random() < 0.9})
            for _ in range(20)
        ]
        wanted = [sorted(truth.match(event)) for event in events]
        assert [sorted(index.match(event)) for event in events] == wanted
        assert [sorted(one) for one in index.match_encoded([event.encode() for event in events])] == wanted
        if turn == 1:
            index.save(tmp_path / "index")
            mapped = palio.MatchIndex.open_mapped(tmp_path / "index")
            assert [sorted(mapped.match(event)) for event in events] == wanted
        for text in list(truth):
            if draw.random() < 0.3:
                index.remove(text)
                truth.remove(text)


def test_what_ignores_case_is_excluded_by_a_bit():
    core = pytest.importorskip("palio.matching.core")
    assert core is not None
    filters = [f'not x = "Name {number}" ignoring case' for number in range(500)]
    index = palio.MatchIndex(enumerate(filters))
    assert index.statistics().asked == 0
    event = palio.Notification({"x": "nAME 7"})
    assert len(index.match(event)) == 499
    before = index._core.steps
    index.match(event)
    assert index._core.steps - before < 10
