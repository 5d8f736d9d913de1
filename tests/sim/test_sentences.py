"""What goes wrong, and what happens, is told in sentences, which have places only for what there is."""

from string import Formatter
from typing import get_args

import pytest

from palio.sim.faults import document_violations, steps
from palio.sim.faults import violations as broken
from palio.sim.violations import Violation


def kinds(base):
    return [one for kind in base.__subclasses__() for one in (kind, *kinds(kind))]


# Those that do not put their sentence together by themselves.
TOLD = [kind for kind in (*kinds(Violation), *get_args(steps.Step)) if "sentence" in vars(kind)]


def places(sentence):
    return {name.partition("[")[0] for _, name, _, _ in Formatter().parse(sentence) if name}


def test_every_kind_has_a_sentence():
    bases = {broken.BrokenPromise, document_violations.DocumentPromise}
    silent = {*kinds(Violation), *get_args(steps.Step)} - set(TOLD) - bases
    assert all("__str__" in vars(kind) for kind in silent)
    assert {broken.AfterDone, steps.End} <= set(TOLD)


@pytest.mark.parametrize("kind", TOLD, ids=lambda kind: kind.__name__)
def test_a_sentence_has_places_only_for_fields(kind):
    assert places(kind.sentence) <= {*kind.__struct_fields__, "it"}


def test_a_place_without_a_field_is_found():
    assert not places("{session} got {nothing[0]}.") <= {*broken.AfterDone.__struct_fields__, "it"}
