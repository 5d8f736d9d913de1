"""The store of a broker that is stopped is trimmed by the rules of one that runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from palio.broker.maintenance import trim_store
from palio.routing.durable.effects import SaveFact
from palio.routing.durable.facts import FactKind
from palio.store import Journal, StoreInUse
from palio.store.retention_holds import hold
from tests.store.driving import Driven, append


def test_only_what_nobody_needs_is_let_go(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/palio.db"
    with Driven(url) as driven:
        driven.do(append(1, 1, 30), SaveFact(2, FactKind.READER.of("someone", "b"), 20))
        with pytest.raises(StoreInUse):
            trim_store(url)
    hold(url, "b", "lake 1", 12)
    trimmed = trim_store(url)
    assert (trimmed.journal.trimmed, trimmed.journal.head) == (12, 30)
    assert trimmed.needed_by == (("reader lake 1", 12), ("durable subscription someone", 20))
    with Journal(url) as journal:
        assert journal.range().first == 13
    hold(url, "b", "lake 1", 30)
    assert trim_store(url, upto=15).journal.trimmed == 15
    assert trim_store(url, "b").journal.trimmed == 20
    hold(url, "b", "lake 1", -1)
    assert trim_store(url).needed_by == (("durable subscription someone", 20),)


def test_a_hold_beside_a_running_broker_is_respected(tmp_path: Path) -> None:
    from palio.routing.durable.effects import Trim

    url = f"sqlite:///{tmp_path}/palio.db"
    with Driven(url) as driven, Journal(url) as journal:
        driven.do(append(1, 1, 30))
        hold(url, "b", "lake 1", 10)
        driven.store.submit((Trim(25),))
        driven.do(append(2, 31))
        assert journal.range().first == 11
