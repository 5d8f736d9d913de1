"""The settings of the gateway (`[gateway]`)."""

from __future__ import annotations

import msgspec

from palio.model.amounts import Positive, Seconds


class GatewaySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What HTTP may be used for, and by whom. `push_…` is how webhooks are treated."""

    body: Positive = 8 * 1024 * 1024  # bytes of one request
    bodies: Positive = 64 * 1024 * 1024  # bytes of all requests that are in memory at a time
    # A body of more bytes lies in a file while it comes. Notifications of business are mostly below.
    body_in_memory: Positive = 256 * 1024
    bodies_in_files: Positive = 1024 * 1024 * 1024  # bytes of all such files at a time
    body_within: Seconds = 30.0  # seconds until the head of a request, and then its body, must have come
    keep_alive: Seconds = 15.0  # seconds of silence on an event stream after which a comment is sent
    stalled: Seconds = 60.0  # seconds without taking anything after which an event stream is cut off
    origins: tuple[str, ...] = ()  # web pages of other places that may call, such as https://app.example
    hosts: tuple[str, ...] = ()  # names under which a broker that is for this machine only may be called
    subscriptions: Positive = 1_000  # subscriptions as resources, in all
    sinks: tuple[str, ...] = ()  # networks within which webhooks may be though they are not public: 10.0.0.0/8
    validate_sinks: bool = True  # whether a webhook must have agreed (OPTIONS) before anything is sent to it
    push_in_flight: Positive = 8  # requests that are out to one webhook at a time
    push_within: Seconds = 10.0  # seconds until a webhook must have answered
    push_attempts: Positive = 12
    push_first_pause: Seconds = 1.0
    push_longest_pause: Seconds = 300.0
