"""`Experiment`: what a TOML file says about which runs to make and what to look for in them.

    title = "…"
    seeds = 10                        # runs a point, each with a seed of its own

    simulator = "routing"             # or "cost" (of durable delivery), "reconfiguration" (of a tree), "churn":
                                      # decides what a scenario is
    [base]                            # fields of the scenario that all runs share
    [quick]                           # how `--quick` makes it small: fewer seeds, other fields
    [measures.NAME]                   # numbers calculated from those of a run, by a formula

    [[sweeps]]                        # every combination of a variant, of the listed values, and of a seed
    variants.LABEL = { … }            # fields of the scenario under a name: the lines of a plot
    over.FIELD = [ … ]                # fields of the scenario, each with the values that it takes
    follow.FIELD = "FORMULA"          # fields that follow from the others

    [[plots]]                         # a measure along a swept field, a line a variant
    [[fits]]                          # a power law along a swept field, and what it says about larger networks
    [[claims]]                        # what the data shall support or not, decided by the rules in `claims`

Everything is checked when the file is read, with the path of what is wrong: a sweep that runs for an hour does
not fail at the end because of a misspelt name.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

# Fewer runs a point leave intervals so wide that nothing can be decided; `--quick` may still do it.
LEAST_SEEDS = 10

Settings: TypeAlias = dict[str, Any]
Where: TypeAlias = dict[str, Any]


class _ExperimentPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Measure(_ExperimentPart, frozen=True):
    """A number calculated from those of a run; `label` and `unit` are what plots and texts call it."""

    formula: str
    label: str = ""
    unit: str = ""


class Sweep(_ExperimentPart, frozen=True):
    """The runs of one part of an experiment."""

    name: str
    base: Settings = {}
    variants: dict[str, Settings] = {}
    over: dict[str, list[Any]] = {}
    follow: dict[str, str] = {}
    quick: dict[str, list[Any]] = {}  # the values to take instead with `--quick`


class _View(_ExperimentPart, frozen=True, kw_only=True):
    name: str
    title: str
    sweep: str
    along: str
    y: str
    where: Where = {}
    variants: list[str] = []


class Plot(_View, frozen=True, kw_only=True):
    """`y` along the swept field `along`, a line for each variant, a panel for each value of `panels`.

    `x` is what the horizontal axis shows, if not the swept field itself: a measure that follows from it.
    """

    x: str = ""
    panels: str = ""
    log_x: bool = False
    log_y: bool = False
    from_zero: bool = False
    text: str = ""


class Fit(_View, frozen=True, kw_only=True):
    """How `y` grows along a swept field, and what that would be at the values of `extrapolate`.

    `paper` is a formula for the same number, thought out and not fitted; `reasoning` says how it comes about.
    """

    extrapolate: list[float] = []
    paper: dict[str, str] = {}  # by variant, over the fields of a scenario
    proportional: list[str] = []  # fields of the scenario that grow along with `along`
    reasoning: str = ""


class _Claim(_ExperimentPart, frozen=True, kw_only=True, tag_field="kind"):
    title: str
    sweep: str
    measure: str
    where: Where = {}


class Lower(_Claim, frozen=True, kw_only=True, tag="lower"):
    """`measure` is lower with `variant` than with the variant `than`."""

    variant: str
    than: str


class Falls(_Claim, frozen=True, kw_only=True, tag="falls"):
    """`measure` falls along a swept field, with each of the variants."""

    along: str
    variants: list[str] = []


class Similar(_Claim, frozen=True, kw_only=True, tag="similar"):
    """`measure` of `variant` is that of `to`, give or take the share `within`."""

    variant: str
    to: str
    within: float = 0.2


class Crossover(_Claim, frozen=True, kw_only=True, tag="crossover"):
    """Along a swept field, `measure` is lower with `variant` at first and with `later` in the end.

    `x` is what the text names the place of the crossing by, if not by the swept field itself.
    """

    along: str
    variant: str
    later: str
    x: str = ""


class AtMost(_Claim, frozen=True, kw_only=True, tag="at most"):
    """`measure` of `variant` is at most `factor` times that of `of`."""

    variant: str
    of: str
    factor: float


Claim: TypeAlias = Lower | AtMost | Falls | Similar | Crossover


class Quick(_ExperimentPart, frozen=True):
    """What `--quick` changes."""

    seeds: int = 3
    base: Settings = {}


class Experiment(_ExperimentPart, frozen=True):
    """A whole experiment. `name` is that of its file and of its output folder."""

    title: str
    sweeps: list[Sweep]
    name: str = ""
    description: str = ""
    simulator: Literal["routing", "cost", "reconfiguration", "churn"] = "routing"
    seeds: int = LEAST_SEEDS
    base: Settings = {}
    quick: Quick = Quick()
    measures: dict[str, Measure] = {}
    labels: dict[str, str] = {}  # what plots and texts call a field
    plots: list[Plot] = []
    fits: list[Fit] = []
    claims: list[Claim] = []

    def sweep(self, name: str) -> Sweep:
        return next(sweep for sweep in self.sweeps if sweep.name == name)

    def label(self, name: str) -> str:
        """What people call a field or a measure, with its unit."""
        measure = self.measures.get(name)
        if measure is None:
            return self.labels.get(name, name.replace("_", " "))
        text = measure.label or name.replace("_", " ")
        return f"{text} ({measure.unit})" if measure.unit else text

    def short_label(self, name: str) -> str:
        """The same without the unit, for running text."""
        measure = self.measures.get(name)
        return (measure.label or name.replace("_", " ")) if measure else self.label(name)
