"""What users of other systems have met does not happen here; and where it would, the scenario finds it."""

from __future__ import annotations

import msgspec
import pytest

from palio.routing.overlay.beside import Beside
from palio.routing.overlay.contacts import ContactBook
from palio.routing.overlay.settings import Passable
from palio.routing.overlay.tree import TreeOverlay
from palio.routing.waves import Waves
from palio.sim.overlay.reported import REPORTED


@pytest.mark.parametrize("name", REPORTED)
def test_it_does_not_happen_here(name):
    assert REPORTED[name]() == []


def passing_names_on(monkeypatch):
    monkeypatch.setattr(Passable, "__call__", lambda self, address: bool(address))


def asking_once(monkeypatch):
    candidates = ContactBook.candidates

    def only_new_ones(self, neighbours, now):
        return [one for one in candidates(self, neighbours, now) if not (one.to_join and one.broker)]

    monkeypatch.setattr(ContactBook, "candidates", only_new_ones)


def nameless(monkeypatch):
    standing = TreeOverlay.standing
    monkeypatch.setattr(
        TreeOverlay, "standing", lambda self, link: msgspec.structs.replace(standing(self, link), network="")
    )


def silent_about_others(monkeypatch):
    monkeypatch.setattr(Beside, "contacts", lambda self, but, most=0: ())


def forgetful(monkeypatch):
    begin = ContactBook.begin
    monkeypatch.setattr(ContactBook, "begin", lambda self, address, met=(), now=0.0: begin(self, address))


def strict(monkeypatch):
    monkeypatch.setattr("palio.routing.overlay.tree.MOST_BEYOND", 0)
    monkeypatch.setattr(Beside, "contacts", lambda self, but, most=0: ())


def never_again(monkeypatch):
    monkeypatch.setattr(TreeOverlay, "_look_later", lambda self: setattr(self, "_look_at", None))
    monkeypatch.setattr(TreeOverlay, "_shrunk", lambda self: None)


def hasty(monkeypatch):
    monkeypatch.setattr(Waves, "hold", lambda self, holding: None)


FAULTS = {
    "a name that was passed on": passing_names_on,
    "a name that is resolved once": asking_once,
    "a name that leads into another network": nameless,
    "everybody joined through one broker": silent_about_others,
    "all begin anew without the one to join": forgetful,
    "a full star": strict,
    "a broker that is back before it was missed": never_again,
    "events after a join": hasty,
}


@pytest.mark.parametrize("name", REPORTED)
def test_where_it_happens_it_is_found(name, monkeypatch):
    FAULTS[name](monkeypatch)
    assert REPORTED[name]() != []
