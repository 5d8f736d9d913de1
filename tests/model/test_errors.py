"""How errors are declared: fields once, a sentence once."""

from __future__ import annotations

import pickle
from dataclasses import InitVar

import pytest

from palio.model.errors import PalioError, cut


class Late(PalioError, TimeoutError):
    """One with a template."""

    train: str
    minutes: int = 5
    sentence = "The train {train!r} is {minutes:,} minutes late."


class Missed(PalioError):
    """One whose sentence takes a decision, and is given something that is no field."""

    train: str
    why: InitVar[str] = ""
    next: str | None = None

    def sentence(self, why: str) -> str:
        because = f" because {why}" if why else ""
        return f"{self.train} was missed{because}; the next is {self.next or 'tomorrow'}."


class Overbooked(Late, kw_only=True):
    """One that takes what its base declares, too, and all of it by name."""

    seats: int
    sentence = "{train} has {seats} seats."


class Shouted(PalioError):
    """What a stranger wrote."""

    text: str = cut(5)
    by: str
    sentence = "{by} shouted {text!r}."


class Own(Late):
    """One with a constructor of its own."""

    def __init__(self, number: int) -> None:
        super().__init__(f"number {number}", 1_000)


class Free(PalioError):
    """One that is given its sentence."""


@pytest.mark.parametrize(
    ("error", "sentence", "fields"),
    [
        (Late("a"), "The train 'a' is 5 minutes late.", {"train": "a", "minutes": 5}),
        (Late("{b}", 1234), "The train '{b}' is 1,234 minutes late.", {"train": "{b}", "minutes": 1234}),
        (Late(minutes=1, train="a"), "The train 'a' is 1 minutes late.", {"train": "a", "minutes": 1}),
        (Missed("a"), "a was missed; the next is tomorrow.", {"train": "a", "next": None}),
        (
            Missed("a", "of rain", "b"),
            "a was missed because of rain; the next is b.",
            {"train": "a", "next": "b"},
        ),
        (Overbooked(train="a", seats=3), "a has 3 seats.", {"train": "a", "minutes": 5, "seats": 3}),
        (Shouted("123456", by="me"), "me shouted '12345'.", {"text": "12345", "by": "me"}),
        (Own(7), "The train 'number 7' is 1,000 minutes late.", {"train": "number 7", "minutes": 1_000}),
        (Free("Something.", place=3), "Something.", {"place": 3}),
    ],
)
def test_an_error_has_its_fields_and_its_sentence_also_after_pickling(error, sentence, fields):
    for one in (error, pickle.loads(pickle.dumps(error))):
        assert type(one) is type(error)
        assert str(one) == sentence
        assert one.args == (sentence,)
        assert list(one.fields.items()) == list(fields.items())
        assert {name: getattr(one, name) for name in fields} == fields


def test_what_is_given_for_the_sentence_only_is_not_kept():
    assert "why" not in vars(Missed("a", why="of rain"))


def test_an_error_is_of_the_kinds_that_it_inherits_from():
    with pytest.raises(TimeoutError, match="late"):
        raise Late("a")


@pytest.mark.parametrize(
    ("kind", "given", "named", "complaint"),
    [
        (Late, (), {}, "Late is made of train, minutes."),
        (Late, ("a", 1, 2), {}, "Late is made of train, minutes."),
        (Late, ("a",), {"train": "b"}, "Late is made of train, minutes."),
        (Late, ("a",), {"hours": 1}, "Late is made of train, minutes."),
        (Overbooked, ("a", 1, 2), {}, "Overbooked is made of train, minutes, seats, by name."),
    ],
)
def test_what_is_missing_too_much_twice_or_unknown_is_refused(kind, given, named, complaint):
    with pytest.raises(TypeError) as raised:
        kind(*given, **named)
    assert str(raised.value) == complaint
