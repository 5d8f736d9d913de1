"""What the data say, as numbers: what the report shows, and what `--json` writes.

Everything here is bounded, whatever the data: so many attributes, values, subscriptions, and no more. Where
something was left out, counted about or sampled, a field says so.
"""

from __future__ import annotations

import msgspec

Value = str | int | float | bool


class ValueCount(msgspec.Struct, frozen=True):
    """A value, and how many events have it."""

    value: Value
    events: int


class Bin(msgspec.Struct, frozen=True):
    """Events whose number is at least `low` and below `high`; the last bin has its end as well."""

    low: float
    high: float
    events: int


class Moment(msgspec.Struct, frozen=True):
    """What came in one step of time: all events, those of each group, and those that somebody wanted."""

    time: float
    events: int
    groups: dict[str, int]
    wanted: int | None = None


class Traffic(msgspec.Struct, frozen=True):
    """Events over time; `untimed` are those of which nobody knows when they were.

    `by` is what the groups are values of; what is in no group is among the others.
    """

    events: int
    bytes: int | None = None
    unreadable: int = 0
    first: float | None = None
    last: float | None = None
    step: float | None = None
    by: str | None = None
    groups: list[str] = []
    moments: list[Moment] = []
    publishers: list[ValueCount] = []
    publishers_distinct: int = 0
    untimed: int = 0


class Attribute(msgspec.Struct, frozen=True):
    """The values of one attribute that are of one family.

    `values` are the most frequent, each count too small by at most `values_missed`. `quantiles` go from the
    least to the greatest in equal steps, and are those of a sample of the values.
    """

    name: str
    family: str
    events: int
    share: float
    kinds: dict[str, int]
    distinct: int
    distinct_exact: bool
    values: list[ValueCount] = []
    values_missed: int = 0
    least: float | None = None
    most: float | None = None
    mean: float | None = None
    deviation: float | None = None
    quantiles: list[float] = []
    bins: list[Bin] = []
    logarithmic: bool = False


class Selectivity(msgspec.Struct, frozen=True):
    """A constraint as subscriptions have it: how many do, and the share of events that satisfy it."""

    attribute: str
    operator: str
    text: str
    subscriptions: int
    events: int
    share: float


class SubscriptionHits(msgspec.Struct, frozen=True):
    """A subscription, and how many events satisfy it."""

    id: str
    filter: str
    events: int
    share: float


class Hits(msgspec.Struct, frozen=True):
    """What subscriptions find.

    `by_share` counts subscriptions by the share of events that they find, in steps of ten: 0 is one event in
    one to ten, 1 one in ten to a hundred. `by_reach` counts events by how many subscriptions they satisfy, in
    steps of doubling: 0 is none, 1 is 1, 2 is 2 to 3, 3 is 4 to 7.
    """

    subscriptions: int
    unreadable: int
    never: int
    pairs: int
    wanted: int
    by_share: dict[int, int]
    by_reach: dict[int, int]
    most: list[SubscriptionHits]
    never_some: list[SubscriptionHits]


class Savings(msgspec.Struct, frozen=True):
    """How many filters a broker has to tell its neighbours of: all, each once, by covering, by merging.

    Of `subscriptions`, `considered` were looked at; fewer means a sample.
    """

    subscriptions: int
    considered: int
    distinct: int
    covering: int
    merging: int


class Figures(msgspec.Struct, frozen=True):
    """All of it."""

    source: str
    made: float
    filter: str | None
    traffic: Traffic
    attributes: list[Attribute]
    attributes_left_out: int
    selectivities: list[Selectivity] = []
    constraints: int = 0
    hits: Hits | None = None
    savings: Savings | None = None
    version: int = 1
