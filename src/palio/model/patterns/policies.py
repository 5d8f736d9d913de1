"""Which of the possible matches there are: the answer of Siena's paper, which is the default, and others.

`order`: in which order events are looked at. By `arrival`, a step comes after another if it arrived later *and*
has a later time; by `time`, if it has a later time, whenever it arrived.

`select`: `first` is the match whose events come first, compared one by one in that order; `every` is every
match.

`consume`: what a match uses up. `all` begins anew after its last event; `own` uses up its own events; with
`none` an event that can begin a match begins one, whatever others did with it. `first` and `last` begin anew
with the first or the last event that the match has of a step, which `to` names; a match that has none of it
uses up its first event only.

`timeout`: what becomes of a beginning that could still be completed when its time was over. `drop` says nothing
of it; `tell` tells it, with the events that it has, as something that timed out.
"""

from __future__ import annotations

import msgspec

from palio.model.errors import PatternError

# The first of each is that of Siena's paper. What `skip to` says is not among them, since it names a step.
POLICIES = {
    "select": ("first", "every"),
    "consume": ("all", "own", "none"),
    "order": ("arrival", "time"),
    "timeout": ("drop", "tell"),
}
# What is not read as an attribute behind `by`: a policy follows there.
CLAUSES = frozenset(("select", "consume", "order"))


class Policies(msgspec.Struct, frozen=True):
    """A choice for each question."""

    select: str = "first"
    consume: str = "all"
    order: str = "arrival"
    to: str | None = None
    timeout: str = "drop"

    @staticmethod
    def of(said: dict[str, str]) -> Policies:
        """From what was said. Raises `PatternError` for what does not go together."""
        if said.get("select") == "every":
            if said.get("consume", "none") != "none":
                raise PatternError(
                    "`select every` uses up nothing: it goes with `consume none`, "
                    "or without `consume` and `skip`."
                )
            said = {**said, "consume": "none"}
        return Policies(**said)

    def __str__(self) -> str:
        """Only what is not the default."""
        parts = [f"select {self.select}"] if self.select != "first" else []
        if self.to is not None:
            parts.append(f"skip to {self.consume} {self.to}")
        elif self.consume != "all" and self.select == "first":
            parts.append(f"consume {self.consume}")
        if self.order != "arrival":
            parts.append(f"order {self.order}")
        if self.timeout != "drop":
            parts.append(f"timeout {self.timeout}")
        return " ".join(parts)
