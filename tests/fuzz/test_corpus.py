"""The decoders bear what is in the corpus: one input for each of them at least, and all that was ever found."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.fuzz.decoders import DECODERS

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*/*"))


def _name(file: Path) -> str:
    return f"{file.parent.name}-{file.name}"


@pytest.mark.parametrize("file", CORPUS, ids=_name)
def test_the_decoders_bear_it(file: Path) -> None:
    DECODERS[file.parent.name](file.read_bytes())


def test_every_decoder_has_something() -> None:
    assert {file.parent.name for file in CORPUS} == set(DECODERS)


@pytest.mark.parametrize("file", CORPUS, ids=_name)
def test_the_decoders_bear_it_damaged(file: Path) -> None:
    chance, data = random.Random(_name(file)), file.read_bytes()
    for _ in range(50):
        damaged = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        DECODERS[file.parent.name](bytes(damaged))
