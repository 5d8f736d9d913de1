"""Saved indexes: mapped, they answer as before, and nobody can change them."""

import contextlib
import random

import pytest

import palio
from palio.matching import fallback, oracle
from tests.matching.test_large import event, text

pytest.importorskip("palio.matching.core")


@pytest.fixture
def filled():
    draw = random.Random(3)
    index = palio.MatchIndex((number, text(draw)) for number in range(3_000))
    for number in range(4_000, 5_000):  # many of one group, for blocks
        index.add(number, f"u > {number % 100} and v < {number // 50}")
    for number in range(0, 3_000, 3):
        index.remove(number)
    for number in range(3_000, 3_200):
        index.add(number, text(draw))
    return index, [palio.Notification(event(draw)) for _ in range(50)]


def test_a_mapped_index_answers_like_the_one_that_was_saved(filled, tmp_path):
    index, events = filled
    index.save(tmp_path / "index")
    mapped = palio.MatchIndex.open_mapped(tmp_path / "index")
    assert [sorted(mapped.match(one)) for one in events] == [sorted(index.match(one)) for one in events]
    assert len(mapped) == len(index)
    assert sorted(mapped) == sorted(index)
    assert mapped[3_001] == index[3_001]
    assert 0 not in mapped
    assert mapped.statistics().conjunctions == index.statistics().conjunctions
    assert mapped.statistics().blocks > 0


def test_a_mapped_index_matches_tables(filled, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    index, _ = filled
    index.save(tmp_path / "index")
    table = pyarrow.table({"u": [1.0, 50.0, 99.0] * 100, "k": ["0", "1", None] * 100})
    found = [one.to_pylist() for one in palio.MatchIndex.open_mapped(tmp_path / "index").match_batch(table)]
    assert sorted(zip(*found, strict=True)) == sorted(
        zip(*(one.to_pylist() for one in index.match_batch(table)), strict=True)
    )


def test_saving_what_is_mapped_gives_the_same_again(filled, tmp_path):
    index, events = filled
    index.save(tmp_path / "first")
    palio.MatchIndex.open_mapped(tmp_path / "first").save(tmp_path / "second")
    again = palio.MatchIndex.open_mapped(tmp_path / "second")
    assert [sorted(again.match(one)) for one in events] == [sorted(index.match(one)) for one in events]


def test_ids_of_other_kinds(tmp_path):
    ids = ["a", 7, ("b", (1, None)), b"raw", 2.5]
    index = palio.MatchIndex((id, "x > 1") for id in ids)
    index.save(tmp_path / "index")
    mapped = palio.MatchIndex.open_mapped(tmp_path / "index")
    assert set(mapped.match(palio.Notification({"x": 2}))) == set(ids)
    assert mapped[("b", (1, None))] == palio.Filter.parse("x > 1")
    index.add(frozenset([1]), "x > 1")
    with pytest.raises(palio.UnsupportedId):
        index.save(tmp_path / "index")


def test_a_mapped_index_cannot_be_changed(tmp_path):
    palio.MatchIndex([(1, "x > 1")]).save(tmp_path / "index")
    mapped = palio.MatchIndex.open_mapped(tmp_path / "index")
    with pytest.raises(palio.ReadOnlyIndex):
        mapped.add(2, "x > 2")
    with pytest.raises(palio.ReadOnlyIndex):
        mapped.remove(1)


def test_an_empty_index(tmp_path):
    palio.MatchIndex().save(tmp_path / "index")
    mapped = palio.MatchIndex.open_mapped(tmp_path / "index")
    assert mapped.match(palio.Notification({"x": 1})) == []
    assert list(mapped) == []


def test_other_files_are_refused(tmp_path):
    palio.MatchIndex([(1, "x > 1")]).save(tmp_path / "index")
    whole = (tmp_path / "index").read_bytes()
    for name, content in {"empty": b"", "other": b"x" * 500, "short": whole[:100], "cut": whole[:-7]}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(palio.UnreadableIndex):
            palio.MatchIndex.open_mapped(tmp_path / name)


def test_no_flipped_bit_passes(filled, tmp_path):
    index, _ = filled
    index.save(tmp_path / "index")
    whole = bytearray((tmp_path / "index").read_bytes())
    draw = random.Random(11)
    places = [*range(32 * 8), *(draw.randrange(len(whole) * 8) for _ in range(300))]
    for place in places:
        whole[place // 8] ^= 1 << place % 8
        (tmp_path / "damaged").write_bytes(whole)
        with pytest.raises(palio.UnreadableIndex):
            palio.MatchIndex.open_mapped(tmp_path / "damaged")
        whole[place // 8] ^= 1 << place % 8


def test_a_damaged_table_of_contents_is_refused_even_unverified(tmp_path):
    palio.MatchIndex([(1, "x > 1")]).save(tmp_path / "index")
    whole = bytearray((tmp_path / "index").read_bytes())
    contents = whole.rindex(b"sections")
    draw = random.Random(12)
    opened = 0
    for _ in range(500):
        place = draw.randrange((contents - 1) * 8, len(whole) * 8)
        whole[place // 8] ^= 1 << place % 8
        (tmp_path / "damaged").write_bytes(whole)
        with contextlib.suppress(palio.UnreadableIndex):
            palio.MatchIndex.open_mapped(tmp_path / "damaged", verify=False)
            opened += 1
        whole[place // 8] ^= 1 << place % 8
    assert opened < 500


def test_a_file_that_is_trusted_is_not_read_through(filled, tmp_path):
    index, events = filled
    index.save(tmp_path / "index")
    mapped = palio.MatchIndex.open_mapped(tmp_path / "index", verify=False)
    assert [sorted(mapped.match(one)) for one in events] == [sorted(index.match(one)) for one in events]


@pytest.mark.parametrize("writer", [palio.MatchIndex, fallback.MatchIndex])
@pytest.mark.parametrize("reader", [palio.MatchIndex, fallback.MatchIndex])
def test_with_and_without_the_core_files_are_understood(writer, reader, tmp_path):
    draw = random.Random(1)
    entries = [(number, text(draw)) for number in range(200)]
    saved = writer(entries)
    saved.remove(5)
    saved.save(tmp_path / "index")
    truth = oracle.MatchIndex(entry for entry in entries if entry[0] != 5)
    opened = reader.open_mapped(tmp_path / "index")
    for _ in range(20):
        one = palio.Notification(event(draw))
        assert sorted(opened.match(one)) == sorted(truth.match(one))
    with pytest.raises(palio.ReadOnlyIndex):
        opened.add("new", "x > 1")
