"""What can be wrong with a pattern that can be read: all of it is found before the first event comes."""

from __future__ import annotations

from collections.abc import Sequence

from palio.model.errors import PatternError, PatternTooLarge
from palio.model.patterns.computed import computed_references
from palio.model.patterns.shape import Absence, All, Either, Loop, Shape, Step, Then, Times, steps_of
from palio.model.patterns.variants import NEEDED, Variant
from palio.model.valueset import PRESENT, union

# More than a person writes; a window longer than a year is a question to the archive.
MAX_STEPS = 32
MAX_PARTITION_ATTRIBUTES = 8
MAX_WINDOW = 366 * 86_400_000_000


def check_sizes(steps: Sequence[Step], within: int, by: Sequence[str]) -> None:
    """Raises `PatternTooLarge`."""
    if len(steps) > MAX_STEPS:
        raise PatternTooLarge(what="steps", limit=MAX_STEPS, got=len(steps))
    if len(by) > MAX_PARTITION_ATTRIBUTES:
        raise PatternTooLarge(what="attributes behind `by`", limit=MAX_PARTITION_ATTRIBUTES, got=len(by))
    if within > MAX_WINDOW:
        day = 86_400_000_000
        raise PatternTooLarge(what="days in its window", limit=MAX_WINDOW // day, got=-(-within // day))


def check_absences(shape: Shape) -> None:
    """An absence needs something that it comes after. Raises `PatternError`."""
    match shape:
        case Absence(part, _):
            names = " or ".join(f"`{step.name}`" for step in steps_of(part))
            raise PatternError(
                f"The absence of {names} has no beginning: a `not` stands behind a step and `then`, as in "
                "A[…] then not B[…] within 10 min."
            )
        case Then(parts):
            check_absences(parts[0])
            for part in parts[1:]:
                if not isinstance(part, Absence):
                    check_absences(part)
        case All(parts) | Either(parts):
            for part in parts:
                check_absences(part)
        case Times() | Loop() | Step():
            pass


def check_names(steps: Sequence[Step]) -> None:
    """No attribute may look like a word about a step. Raises `PatternError`."""
    names = {step.name: number for number, step in enumerate(steps)}
    for number, step in enumerate(steps):
        for attribute in sorted(step.filter.attributes):
            first, point, _ = attribute.partition(".")
            if point and first in names:
                later = names[first] > number
                raise PatternError(
                    f"In step `{step.name}`, `{attribute}` speaks of step `{first}`, which comes later: only "
                    "earlier events can be compared with."
                    if later
                    else f"The attribute `{attribute}` of step `{step.name}` looks like one of step `{first}`; "
                    "give that step another name."
                )


def check_beginning(variants: Sequence[Variant]) -> None:
    """Something has to happen. Raises `PatternError`."""
    if not all(variant.needed for variant in variants):
        raise PatternError(
            "This pattern is satisfied by nothing at all: write `+` for `*`, or a step that has to happen."
        )


def check_skip(to: str | None, steps: Sequence[Step], variants: Sequence[Variant]) -> None:
    """A match has events only of what happens in it. Raises `PatternError`."""
    happen = {steps[number].name for variant in variants for slot in variant.slots for number in slot.steps}
    if to is not None and to not in happen:
        raise PatternError(f"No match has an event of step `{to}` to skip to: it is one that must not happen.")


def check_references(steps: Sequence[Step], variants: Sequence[Variant]) -> None:
    """A step is compared only with what has happened before it, for certain. Raises `PatternError`."""
    numbers = {step.name: number for number, step in enumerate(steps)}
    for number, step in enumerate(steps):
        if step.guard is None:
            continue
        for reference in computed_references(step.guard):
            if reference.step != step.name:
                _check_reference(step, number, reference.step, numbers[reference.step], variants)


def _check_reference(step: Step, number: int, name: str, other: int, variants: Sequence[Variant]) -> None:
    ever = False
    for variant in variants:
        known = [slot.after for slot in variant.slots if number in slot.steps]
        known += [gap.after for gap in variant.gaps if number in gap.steps]
        there = sum(1 << place for place, slot in enumerate(variant.slots) if other in slot.steps)
        if known and there and not all(there & one == there for one in known):
            raise PatternError(
                f"Step `{step.name}` is compared with step `{name}`, which need not have happened before it."
            )
        ever = ever or bool(known and there)
    if not ever:
        raise PatternError(
            f"Step `{step.name}` is compared with step `{name}`, which does not happen before it."
        )


def impossibility(steps: Sequence[Step], variants: Sequence[Variant], by: Sequence[str]) -> str | None:
    """Why a pattern can never fire, as the end of a sentence; None if nothing is known that prevents it."""
    for step in steps:
        reason = step.filter.contradiction
        if reason is not None:
            return f"in step `{step.name}`, {reason}"
    for attribute in by:
        if not any(_shared(attribute, steps, variant) for variant in variants):
            return f"no value of `{attribute}` is possible in all the steps that it has to be the same in."
    return None


def _shared(attribute: str, steps: Sequence[Step], variant: Variant) -> bool:
    """Whether events of all slots can have the same value."""
    shared = PRESENT
    for slot in variant.slots:
        if slot.rank == NEEDED:
            boxes = [box for number in slot.steps for box in steps[number].filter.conjunctions]
            shared &= union(box.side(attribute) for box in boxes)
    return not shared.is_empty()
