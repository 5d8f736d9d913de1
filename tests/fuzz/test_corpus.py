"""The decoders bear what is in the corpus: one input for each of them at least, and all that was ever found."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.fuzz.decoders import DECODERS, run

CORPUS = sorted((Path(__file__).parent / "corpus").iterdir())


@pytest.mark.parametrize("file", CORPUS, ids=lambda file: file.name)
def test_the_decoders_bear_it(file: Path) -> None:
    run(file.read_bytes())


def test_every_decoder_has_something() -> None:
    chosen = {file.read_bytes()[0] % len(DECODERS) for file in CORPUS}
    assert chosen == set(range(len(DECODERS)))


@pytest.mark.parametrize("file", CORPUS, ids=lambda file: file.name)
def test_the_decoders_bear_it_damaged(file: Path) -> None:
    chance, data = random.Random(file.name), file.read_bytes()
    for _ in range(50):
        damaged = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(1, len(damaged))] = chance.randrange(256)
        run(bytes(damaged))
