"""`Outcome`: what a simulated run cost and whether it was right. All numbers, so that it is one row of a table.

Messages are those between brokers, each counted once per link that it crosses; a cost is the sum of the costs
of these links. What clients exchange with their access brokers crosses no link and is counted apart.

Times are simulated seconds; only `wall_seconds` is read from a clock and differs from run to run.
"""

from __future__ import annotations

import msgspec


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one run; its fields are flat and numeric."""

    # What there was
    brokers: int = 0
    links: int = 0
    sessions: int = 0
    violations: int = 0  # of anything that the oracle and the table checks know; 0 in a correct network

    # Between brokers, in all and by kind
    messages: int = 0
    cost: float = 0.0
    subscription_messages: int = 0  # updates that add or remove subscriptions
    subscription_cost: float = 0.0
    rows_added: int = 0  # subscriptions in these updates
    rows_removed: int = 0
    advertisement_messages: int = 0  # updates that change advertisements only
    advertisement_cost: float = 0.0
    advertisements_added: int = 0
    advertisements_removed: int = 0
    forward_messages: int = 0  # messages that carry notifications, however many
    forward_cost: float = 0.0
    forwards: int = 0  # notifications in these messages
    forwards_cost: float = 0.0  # as if each had been a message of its own
    acknowledgement_messages: int = 0
    acknowledgement_cost: float = 0.0
    link_state_messages: int = 0
    link_state_cost: float = 0.0
    greeting_messages: int = 0  # at the beginning and end of links
    greeting_cost: float = 0.0

    # Clients at their access brokers
    subscribes: int = 0
    unsubscribes: int = 0  # of either way: by handle or by covering
    advertises: int = 0
    unadvertises: int = 0
    published: int = 0  # notifications that were taken
    refused: int = 0  # requests that were not
    deliveries: int = 0  # copies for sessions
    deliveries_expected: int = 0  # those that had to come
    deliveries_possible: int = 0  # those that could have come: expected, or racing with a change
    notifications_checked: int = 0  # those for which the two numbers above were worked out

    # Tables at the end: subscriptions that a broker holds for its neighbours
    table_rows: int = 0  # of all brokers together
    table_rows_mean: float = 0.0  # a broker
    table_rows_max: int = 0
    advertisement_rows: int = 0
    advertisement_rows_mean: float = 0.0
    advertisement_rows_max: int = 0

    # Work
    matching_calls: int = 0  # notifications that were matched against a table
    matched_ids: int = 0
    wasted_forwards: int = 0  # notifications that reached a broker and went nowhere from there
    simulated_messages: int = 0  # everything that any broker handled, from clients, neighbours and timers

    # How long it took, from the publication to a session
    hops_mean: float = 0.0
    hops_p50: float = 0.0
    hops_p99: float = 0.0
    hops_max: float = 0.0
    latency_mean: float = 0.0
    latency_p50: float = 0.0
    latency_p99: float = 0.0
    latency_max: float = 0.0
    ready_mean: float = 0.0  # from a request until the whole network knew
    ready_max: float = 0.0

    simulated_seconds: float = 0.0
    wall_seconds: float = 0.0
