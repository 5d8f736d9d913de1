"""The search for candidates, with blocks of their real size, finds what looking at every filter finds."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from palio import Filter
from palio.matching.candidates import Candidates
from palio.matching.filter_blocks import FANOUT, MAX_WAITING, CandidateEntry
from palio.matching.outline import Outline
from palio.matching.poset import Poset
from tests.slices import sliced


def drawn(choose: random.Random, moment: int) -> Filter:
    """Few common attributes, many rare ones, values that drift with time, texts, absence, or."""
    parts = []
    for name in choose.sample(("price", "volume", "level"), choose.randint(0, 2)):
        low = choose.randint(0, 300)
        parts.append(f"{name} between {low} and {low + choose.randint(0, 200)}")
    match choose.randint(0, 7):
        case 0:
            parts.append(f"rare{choose.randint(0, 300)} > {choose.randint(0, 3)}")
        case 1:
            parts.append(f"moment between {moment} and {moment + choose.randint(0, 40)}")
        case 2:
            parts.append(f'path starts with "{"".join(choose.choices("ab", k=choose.randint(1, 6)))}"')
        case 3:
            parts.append(f'path contains "{"".join(choose.choices("ab", k=choose.randint(1, 4)))}"')
            if choose.random() < 0.5:
                parts.append(f'symbol = "{choose.choice("AB")}"')
            if choose.random() < 0.2:
                parts.append(choose.choice(['tags has "ab"', 'title matches "a*b*"', 'title ends with "ba"']))
        case 4:
            parts.append(f"(level = {choose.randint(0, 9)} or absent(level))")
        case 5:
            parts.append(f"(volume < {choose.randint(0, 99)} or price > {choose.randint(0, 99)})")
        case _:
            parts.append(f'symbol = "{choose.choice("ABCDEFGH")}"')
    filter = Filter.parse(" and ".join(parts))
    return filter if filter.contradiction is None else drawn(choose, moment)


@pytest.mark.parametrize("seed", sliced(range(2), 1))
def test_candidates_are_exactly_the_filters_whose_outlines_allow_it(seed):
    choose = random.Random(seed)
    index, entries = Candidates(), []
    for moment in range(3_000):
        outline = Outline(drawn(choose, moment))
        index.covered(outline)  # blocks are built when somebody asks
        entries.append(index.add(outline, moment))
        if choose.random() < 0.3:
            index.remove(entries.pop(choose.randrange(len(entries))))
    for entry in choose.sample(entries, 3 * len(entries) // 5):
        index.remove(entry)
        entries.remove(entry)
    assert sorted(entry.owner for entry in index) == sorted(entry.owner for entry in entries)
    assert index.blocks > 0
    for _ in range(100):
        asked = Outline(drawn(choose, choose.randrange(3_000)))
        covering = {entry.owner for entry in entries if entry.outline.may_cover(asked)}
        covered = {entry.owner for entry in entries if asked.may_cover(entry.outline)}
        assert {entry.owner for entry in index.covering(asked)} == covering
        assert {entry.owner for entry in index.covered(asked)} == covered


def test_an_outline_never_denies_what_covers():
    choose = random.Random(5)
    filters = [drawn(choose, moment) for moment in range(200)]
    outlines = [Outline(filter) for filter in filters]
    related = 0
    for f, of in zip(filters, outlines, strict=True):
        for g, og in zip(filters, outlines, strict=True):
            if f.covers(g):
                related += 1
                assert of.may_cover(og), (f, g)
    assert related > 2 * len(filters)


def test_an_outline_does_not_ask_for_what_may_be_anything():
    """Whatever `a` is, one side or the other allows it: who asks nothing of it can be covered."""
    outline = Outline(Filter.parse("a != 1 and b > 1 or (a = 1 or absent(a)) and b > 2"))
    assert set(outline.outer) == {"b"}
    assert outline.may_cover(Outline(Filter.parse("b > 3")))


def test_attributes_that_nobody_names_any_more_are_forgotten():
    index, anything = Candidates(), Outline(Filter.parse("true"))

    def settled(texts: list[str]) -> list[CandidateEntry]:
        """Added so that they make a block of their own, as soon as somebody asks."""
        entries = [index.add(Outline(Filter.parse(text)), place) for place, text in enumerate(texts)]
        index.covering(anything)
        return entries

    for entry in settled([f"only{number} > 1" for number in range(MAX_WAITING)]):
        index.remove(entry)
    assert "only0" in index._pointless._cuts
    for block in range(FANOUT):  # so many are merged, and what was removed goes
        settled([f"a > {block * MAX_WAITING + number}" for number in range(MAX_WAITING)])
    assert set(index._pointless._cuts) == {"a"}
    for number in range(20):
        index.remove(index.add(Outline(Filter.parse(f"only{number} = 1")), number))
    assert not index._by_point


def test_inserting_compares_with_few_filters():
    choose = random.Random(1)
    poset = Poset()
    for _ in range(4_000):
        low = choose.randint(0, 10**6)
        poset.insert(Filter.parse(f"price between {low} and {low + 500} and id = {choose.randint(0, 99)}"))
    statistics = poset.statistics()
    assert statistics.comparisons < 4 * statistics.filters


def questioning(choose: random.Random) -> Filter:
    """Nothing but questions to texts and lists; few letters, so that some cover others."""
    word = "".join(choose.choices("abc", k=choose.randint(1, 5)))
    name = choose.choice(("path", "title"))
    match choose.randint(0, 7):
        case 0 | 1:
            text = f'{name} contains "{word}"'
        case 2:
            text = f'{name} ends with "{word}"'
        case 3:
            text = f'{name} matches "*{word}*{choose.choice("abc")}*"'
        case 4:
            text = f'tags has "{word}"'
        case 5:
            text = f'tags has contains "{word}" and {name} ends with "{word[:2]}"'
        case 6:
            text = f'{name} contains x"{word.encode().hex()}"'
        case _:
            text = f'{name} contains "{word}" or {name} ends with "{word[::-1]}"'
    return Filter.parse(text)


@pytest.mark.parametrize("seed", sliced(range(4), 1))
def test_questions_are_found_by_their_examples(seed):
    choose = random.Random(seed)
    index, entries = Candidates(), []
    for number in range(250):
        outline = Outline(questioning(choose))
        entries.append(index.add(outline, number))
        if choose.random() < 0.2:
            index.remove(entries.pop(choose.randrange(len(entries))))
    others = ["exists(path)", 'title > "b"', "true", 'path = "abcab"', "price > 3", 'not title contains "a"']
    asked = [questioning(choose) for _ in range(60)] + [Filter.parse(text) for text in others]
    for outline in map(Outline, asked):
        covering = {entry.owner for entry in entries if entry.outline.may_cover(outline)}
        covered = {entry.owner for entry in entries if outline.may_cover(entry.outline)}
        assert {entry.owner for entry in index.covering(outline)} == covering
        assert {entry.owner for entry in index.covered(outline)} == covered
    assert sorted(entry.owner for entry in index) == sorted(entry.owner for entry in entries)


def test_examples_of_long_texts_are_found_too():
    index = Candidates()
    long = "ab" * 2_000
    entries = [
        index.add(Outline(Filter.parse(text)), text)
        for text in (f'x contains "{long}"', f'x contains "{long}" and y > 1', 'x contains "b" and y > 0')
    ]
    asked = Outline(Filter.parse('x contains "aba" and y > 0'))
    assert [entry.owner for entry in index.covered(asked)] == [entries[1].owner]
    assert {entry.owner for entry in index.covering(entries[1].outline)} == {entry.owner for entry in entries}
    for entry in entries:
        index.remove(entry)
    assert list(index) == []


@pytest.fixture
def looked(monkeypatch):
    """How often a filter was looked at."""
    counts: Counter[str] = Counter()
    may_cover = Outline.may_cover

    def counted(self, other):
        counts["at"] += 1
        return may_cover(self, other)

    monkeypatch.setattr(Outline, "may_cover", counted)
    return counts


@pytest.mark.parametrize(
    "kind",
    [
        'title contains "{word}" and price < {number}',
        'title matches "*{word}*a*" and kind = "news"',
        'tags has "{word}" and price > {number}',
        'title contains "Reuters" and price between {number} and {next}',
    ],
)
def test_questions_beside_others_are_not_compared_with_all_others(kind, looked):
    choose = random.Random(5)
    poset = Poset()
    for _ in range(600):
        number = choose.randint(0, 10**6)
        word = "".join(choose.choices("abcdefgh", k=6))
        poset.insert(Filter.parse(kind.format(word=word, number=number, next=number + 10)))
    assert looked["at"] < 600 * 128


def test_questions_are_not_compared_with_all_others(looked):
    choose = random.Random(5)
    poset = Poset()
    for number in range(100):
        word = "".join(choose.choices("abcdefgh", k=6))
        kinds = (
            f'title contains "{word}"',
            f'path ends with "{word}"',
            f'path matches "*{word}*x*"',
            f'tags has "{word}"',
        )
        poset.insert(Filter.parse(kinds[number % 4]))
    assert looked["at"] < 1_000
    poset.check()
