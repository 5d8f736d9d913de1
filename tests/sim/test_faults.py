"""The oracle finds what is wrong: each kind of fault, planted into one message of a broker that is right."""

import pytest

from palio.sim.run import simulate
from palio.sim.scenario import Scenario
from palio.sim.violations import (
    Crashed,
    Duplicate,
    LinkRefused,
    Missing,
    NeverPublished,
    NotAtRest,
    NotReady,
    OutOfOrder,
    RowsDiffer,
    TableExcess,
    Unwanted,
    WrongAnswer,
    WrongHandles,
)
from tests.sim import faults

CROWDED = Scenario(
    brokers=6, subscribers=6, publishers=2, subscriptions=24, notifications=50, interests=2, covered=0.8
)  # fmt: skip
STILL = faults.replace(CROWDED, repeats=0.3)
CHURN = faults.replace(CROWDED, churn=0.7)
CUTS = faults.replace(CROWDED, link_churn=0.4, notifications=100)
# How many seeds may go by before a fault shows: not every change of a message has to matter.
PATIENCE = 20


def found(scenario: Scenario, fault, *, tables: bool = True) -> set[type]:
    run = simulate(scenario, make_router=faults.with_fault(fault), tables=tables)
    return {type(violation) for violation in run.verdict.violations}


@pytest.mark.parametrize("scenario", [STILL, CHURN, CUTS], ids=["still", "churn", "cuts"])
def test_without_a_fault_nothing_is_found(scenario):
    expected = 0
    for seed in range(PATIENCE // 2):
        run = simulate(with_seed(scenario, seed))
        assert run.verdict.violations == []
        expected += run.verdict.expected
    assert expected > 20 * PATIENCE, "little was asked of the oracle"


@pytest.mark.parametrize(
    ("scenario", "fault", "kind"),
    [
        (STILL, faults.LosesForward, Missing),
        (STILL, faults.MisroutesForward, Missing),
        (STILL, faults.SwapsForwards, OutOfOrder),
        (STILL, faults.RepeatsDelivery, Duplicate),
        (STILL, faults.DeliversToWrongSession, Unwanted),
        (STILL, faults.DeliversToWrongSession, Missing),
        (STILL, faults.ForgetsHandle, WrongHandles),
        (STILL, faults.AltersContent, NeverPublished),
        (STILL, faults.Invents, NeverPublished),
        (STILL, faults.LosesUpdate, Missing),
        (STILL, faults.LosesUpdate, NotReady),
        (STILL, faults.LosesUpdate, RowsDiffer),
        (STILL, faults.NeverSaysReady, NotReady),
        (STILL, faults.NeverRests, NotAtRest),
        (STILL, faults.RefusesLink, LinkRefused),
        (STILL, faults.Crashes, Crashed),
        (CHURN, faults.EndsWrongHandles, WrongAnswer),
        (CHURN, faults.DeliversLate, Unwanted),
        (CHURN, faults.ForgetsUncovering, Missing),
        (CHURN, faults.ForgetsUncovering, RowsDiffer),
        (CHURN, faults.KeepsRows, RowsDiffer),
        (CHURN, faults.SaysReadyTooEarly, Missing),
        (CUTS, faults.Panics, Missing),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_fault_is_found(scenario, fault, kind):
    assert any(kind in found(with_seed(scenario, seed), fault) for seed in range(PATIENCE))


def test_a_message_that_arrives_twice_is_no_fault_of_the_network():
    """Duplicates are suppressed where they arrive; nobody gets a second copy."""
    for seed in range(PATIENCE):
        assert found(with_seed(STILL, seed), faults.RepeatsForward) == set()


def test_the_oracle_needs_no_tables_to_find_a_lost_uncovering():
    assert any(
        Missing in found(with_seed(CHURN, seed), faults.ForgetsUncovering, tables=False)
        for seed in range(PATIENCE)
    )


def test_rows_that_nobody_wants_any_more_are_found_after_churn():
    """Both ends agree on the row, so only a comparison with tables from scratch can see it."""
    kinds = {type(one) for one in simulate(CHURN, make_router=faults.IgnoresReleases).verdict.violations}
    assert TableExcess in kinds
    assert RowsDiffer not in kinds


def with_seed(scenario: Scenario, seed: int) -> Scenario:
    return faults.replace(scenario, seed=seed)
