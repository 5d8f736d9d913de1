"""The parties of mosquitto, with paho-mqtt: `publish` at QoS 0, a callback, and paho's own network thread."""

from __future__ import annotations

import threading
from time import perf_counter
from typing import Any

import msgspec
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion

from benchmarks.live.content import FIXED, SUBJECT, as_json, fixed
from benchmarks.live.parties import NOTE, Counters, Line, PartyFailed, Plan, Tally, pause_thread, steps

_PATIENCE = 30.0


def _connect(plan: Plan) -> Client:
    """A client whose connection is up, with its thread running."""
    client = Client(CallbackAPIVersion.VERSION2)
    up = threading.Event()
    client.on_connect = lambda *_: up.set()
    client.connect("127.0.0.1", plan.port)
    client.loop_start()
    if not up.wait(_PATIENCE):
        raise PartyFailed("client of mosquitto", "it was not let in")
    return client


def publish(plan: Plan, counters: Counters, line: Line) -> None:
    client = _connect(plan)
    contents, size = plan.contents, len(plan.contents)
    payloads = [fixed(content) for content in contents]
    line.ready(wait=True)
    count = 0
    last: Any = None
    for start, end in steps(plan):
        for number in range(start, end):
            if plan.timed:
                content = contents[number % size] | {"sent": perf_counter()}
                payload = as_json(content) if plan.json else fixed(content)
            elif plan.json:
                payload = as_json(contents[number % size])
            else:
                payload = payloads[number % size]
            last = client.publish(SUBJECT, payload)
        count = end
        pause_thread(plan, counters, count)
    last.wait_for_publish(_PATIENCE)
    line.report(count)
    client.disconnect()
    client.loop_stop()


def subscribe(plan: Plan, counters: Counters, line: Line) -> None:
    client = _connect(plan)
    tally = Tally(plan, counters)
    subscribed, all_came = threading.Event(), threading.Event()
    count = 0
    decode = msgspec.json.Decoder(dict[str, Any]).decode

    def take(_client: Any, _data: Any, message: Any) -> None:
        nonlocal count
        if plan.json:
            content = decode(message.payload)
            content["key"]
            sent = content["sent"]
        else:
            sent = FIXED.unpack_from(message.payload)[1]
        if tally.latencies is not None:
            tally.latencies.append(perf_counter() - sent)
        count += 1
        if (not count % NOTE or count == plan.events) and tally.note(count):
            all_came.set()

    client.on_message = take
    client.on_subscribe = lambda *_: subscribed.set()
    client.subscribe(SUBJECT)
    if not subscribed.wait(_PATIENCE):
        raise PartyFailed("client of mosquitto", "its subscription was not answered")
    line.ready(wait=False)
    while not all_came.wait(0.05) and not line.stopped(0.0):
        pass
    tally.count = count
    line.report_received(tally)
    client.disconnect()
    client.loop_stop()
