"""Documents in runs full of faults: one current version at its origin and at every keeper, and each beginning.

`palio sim soak --faults --documents` runs more of them.
"""

import inspect
from types import SimpleNamespace

import msgspec
import pytest

from palio.model.filter import Filter
from palio.routing.documents import current
from palio.routing.documents.beginning import RetroactivePosition, RetroactiveSearch
from palio.routing.documents.keeping import WriteRecords
from palio.routing.documents.pulling import CurrentDocuments
from palio.routing.durable.effects import Append, Read
from palio.routing.durable.home.subscription import HomeState
from palio.sim.faults import document_violations as violations
from palio.sim.faults import world
from palio.sim.faults.document_oracle import DOCUMENT_CHECKS
from palio.sim.faults.keepers import FaultKeeper, write_records
from palio.sim.faults.run import simulate
from palio.sim.faults.scenario import FaultScenario
from palio.sim.faults.soak import drawn, with_documents
from tests.sim.durable.planted import Planted
from tests.sim.durable.test_seeds import right
from tests.slices import sliced

FIRST, COUNT, CHUNK = 41_000_001, 240, 24
FOUND_WITHIN = 120


def drawn_with_documents(seed):
    return with_documents(drawn(seed))


@pytest.mark.parametrize("first", sliced(range(FIRST, FIRST + COUNT, CHUNK), 1))
def test_every_promise_is_kept(first):
    records = [right(drawn_with_documents(seed)).record for seed in range(first, first + CHUNK)]
    assert sum(len(record.keeping) for record in records) > CHUNK
    assert sum(len(documents) for record in records for documents in record.current_documents.values()) > CHUNK
    assert sum(len(readings) for record in records for readings in record.beginnings.values()) > CHUNK / 4


def test_a_scenario_with_documents_is_read_back_and_repeated_exactly():
    scenario = drawn_with_documents(7)
    assert FaultScenario.from_json(scenario.to_json()) == scenario
    one, other = simulate(scenario), simulate(scenario)
    assert one.record.lines == other.record.lines
    assert one.record.current_documents == other.record.current_documents


def test_a_position_that_went_back_is_not_waited_for():
    """A journal that came back older never gets to where a subscription was: its position goes back, too."""

    def subscription(sequence):
        position = {"there": sequence, "here": 9}
        return SimpleNamespace(state=HomeState.LIVE, position=position, stored_position=position)

    heard = {"there": 3}.get
    search = RetroactiveSearch("here", Filter())
    assert search.look(subscription(7), heard, 9) is None
    assert search.late(heard) == ("there", 7)
    found = search.look(subscription(2), heard, 9)
    assert found is not None
    assert found.position == {"there": 3, "here": 9}


def test_no_position_is_taken_before_it_is_on_disk_where_the_subscription_begins():
    subscription = SimpleNamespace(state=HomeState.LIVE, position={"there": 0, "here": 0}, stored_position={})
    alone, keeper = RetroactiveSearch("here", None), RetroactiveSearch("here", Filter())
    assert alone.look(subscription, {}.get, 9) is None
    subscription.stored_position["here"] = 0, ""
    assert alone.look(subscription, {}.get, 9) is not None
    assert keeper.look(subscription, {"there": 0}.get, 9) is None
    subscription.stored_position["there"] = 0, ""
    assert keeper.look(subscription, {"there": 0}.get, 9) is not None


# Faults


def caught(kind, first=1, **more):
    """The first run in which a fault shows itself."""
    for seed in range(first, first + FOUND_WITHIN):
        scenario = msgspec.structs.replace(drawn_with_documents(seed), older=0, flips=0)
        run = simulate(scenario, **more)
        found = [one for one in run.violations if type(one) is kind]
        if found:
            assert str(found[0]).endswith(".")
            return run
    raise AssertionError(f"This was not caught as {kind.__name__} in {FOUND_WITHIN} runs.")


def takes_the_earlier_time(patch):
    """Of versions that were published elsewhere, and of those here and elsewhere."""
    patch.setattr(current.KeptVersion, "order", property(lambda one: (-one.time, one.origin)))


def forgets_what_is_withdrawn(patch):
    """A document that was withdrawn is one like any other for who begins."""
    patch.setattr(current.CurrentDocument, "is_withdrawn", False)


def writes_no_record(patch):
    patch.setattr(world, "with_documents", lambda effect: effect)


def writes_records_later(patch):
    """An event is on disk, and its record is written after it."""
    write = world.World.write

    def apart(self, station, effect):
        if isinstance(effect, Append) and effect.envelopes and effect.records:
            write(self, station, msgspec.structs.replace(effect, records=()))
            write_records(self, station, effect.records, lambda there: None)
        else:
            write(self, station, effect)

    patch.setattr(world.World, "write", apart)


def reads_beyond_the_position(patch):
    """A snapshot of the moment at which each of its pages is read."""
    select = CurrentDocuments.select
    patch.setattr(
        CurrentDocuments,
        "select",
        lambda self, wanted, allowed, after, limit, upto=None: select(self, wanted, allowed, after, limit),
    )


def takes_a_position_too_early(patch):
    """The position is beyond what has been published and heard of."""
    look = RetroactiveSearch.look

    def ahead(self, subscription, heard, head):
        found = look(self, subscription, heard, head)
        if found is None:
            return None
        return msgspec.structs.replace(found, position={one: upto + 3 for one, upto in found.position.items()})

    patch.setattr(RetroactiveSearch, "look", ahead)


def passes_over_too_much(patch):
    """What is published right after the position is taken for a part of the documents."""
    patch.setattr(
        RetroactivePosition,
        "has",
        lambda self, envelope: envelope.sequence <= self.position.get(envelope.origin, -1) + 3,
    )


def reads_each_page_twice(patch):
    select = CurrentDocuments.select

    def twice(self, *arguments):
        page = select(self, *arguments)
        return msgspec.structs.replace(page, documents=page.documents * 2)

    patch.setattr(CurrentDocuments, "select", twice)


def acknowledges_before_it_has_written(patch):
    do = FaultKeeper._do

    def hasty(self, session, wish):
        if isinstance(wish, WriteRecords):
            self.world.after(0.02, write_records, self.world, self.station, wish.records, lambda there: None)
            self.world.after(0.0, self._done, session, None)
        else:
            do(self, session, wish)

    patch.setattr(FaultKeeper, "_do", hasty)


def keeps_what_comes_last(patch):
    """Whatever order versions come in."""

    def with_version(self, envelope, keep):
        version = current.KeptVersion(
            envelope.origin, envelope.sequence, envelope.time, current._encode(envelope)
        )
        return current.Versions((version,))

    patch.setattr(current.Versions, "with_version", with_version)


def keeps_the_version_before_one_that_it_does_not_want(patch):
    """A version that is not selected does not take the place of one that was."""
    with_version = current.Versions.with_version

    def kept(self, envelope, keep):
        wanted = keep is None or keep.matches(envelope.notification)
        return with_version(self, envelope, keep) if wanted else self

    patch.setattr(current.Versions, "with_version", kept)


class MissesWhatCameMeanwhile(Planted):
    """What was published while a keeper was cut off is not found for it."""

    def spoil_one(self, effect, now):
        if isinstance(effect, Read) and "xml.family" in str(effect.filter):
            return [msgspec.structs.replace(effect, filter=Filter.parse("n < 0"))]
        return [effect]


# What each is found as, and from which seed on it is looked for: those before it were looked through once.
FAULTS = {
    takes_the_earlier_time: (violations.WrongAtKeeper, 1),
    forgets_what_is_withdrawn: (violations.WrongBeginning, 26),
    writes_no_record: (violations.WrongAtOrigin, 1),
    writes_records_later: (violations.WrongAtOrigin, 17),
    reads_beyond_the_position: (violations.WrongBeginning, 6),
    takes_a_position_too_early: (violations.DocumentLost, 1),
    passes_over_too_much: (violations.LostAfterDocuments, 1),
    reads_each_page_twice: (violations.TwoBeginnings, 1),
    acknowledges_before_it_has_written: (violations.WrongAtKeeper, 127),
    keeps_what_comes_last: (violations.KeepersDisagree, 123),
    keeps_the_version_before_one_that_it_does_not_want: (violations.WrongAtKeeper, 1),
}


@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_caught(plant, monkeypatch):
    plant(monkeypatch)
    kind, first = FAULTS[plant]
    caught(kind, first)


def test_a_keeper_that_misses_what_came_while_it_was_cut_off_is_caught():
    caught(violations.WrongAtKeeper, make_router=MissesWhatCameMeanwhile)


def test_every_kind_of_broken_promise_is_caught_somewhere():
    kinds = {
        one
        for one in vars(violations).values()
        if inspect.isclass(one) and issubclass(one, violations.DocumentPromise)
    } - {violations.DocumentPromise}
    assert kinds == {kind for kind, _ in FAULTS.values()}
    assert len(DOCUMENT_CHECKS) >= 5
