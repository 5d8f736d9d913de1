"""The client for programs without an event loop."""

import threading

import pytest

import palio
import palio.sync
from palio import testing
from palio.client.durable import DurableSubscription


def public(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


def test_it_has_the_same_names():
    assert public(palio.Client) - {"publish_body"} <= public(palio.sync.Client)
    of_subscriptions = {"change", "detach", "next", "ready", "statistics", "unsubscribe"}
    assert of_subscriptions <= public(palio.sync.Subscription) & public(DurableSubscription)
    with testing.broker() as address, palio.sync.connect(address) as client:
        subscription = client.subscribe("true")
        client.publish({"n": 1})
        event = subscription.next(timeout=10)
        assert all(hasattr(event, name) for name in public(palio.Event))


def test_publishing_and_subscribing():
    with testing.broker() as address, palio.sync.connect(address) as client:
        subscription = client.subscribe("n >= 0", ready="network")
        assert client.publish({"n": 0}).sequence == 1
        for n in range(1, 10_000):
            client.publish_nowait({"n": n})
        assert [one.sequence for one in client.publish([{"n": 10_000}, {"n": 10_001}])] == [10_001, 10_002]
        events = [subscription.next(timeout=10) for _ in range(10_002)]
        assert [event["n"] for event in events] == list(range(10_002))
        assert events[0].get("none", 7) == 7
        assert events[0].notification == palio.Notification({"n": 0})
        assert list(subscription.events(timeout=0.01)) == []
        with pytest.raises(palio.RequestTimeout):
            subscription.next(timeout=0.01)
        subscription.unsubscribe()
        assert list(subscription) == []
        with pytest.raises(palio.PalioError):
            client.publish_nowait({"n": float("nan")})


def test_patterns():
    with testing.broker() as address, palio.sync.connect(address) as client:
        detection = client.detect({"rise": "A[n > 0] then B[n > A.n * 2] within 1 min"}, delay=0)
        for n in (1, 2, 3, 4):
            client.publish({"n": n}, id=f"e{n}")
        match = next(iter(detection))
        assert [one.id for one in match.constituents] == ["e1", "e3"]
        assert detection.statistics().counts.matches == 1
        detection.stop()
        assert list(detection) == []


def test_durable_subscriptions():
    with testing.broker(journal=True) as address:
        with palio.sync.connect(address) as client:
            desk = client.subscribe("n >= 0", durable="desk")
            client.publish([{"n": n} for n in range(4)])
            with desk.next(timeout=10).process() as event:
                assert event["n"] == 0
            desk.next(timeout=10).ack()
            desk.next(timeout=10).ack(confirmed=True)
            assert desk.change("n > 1").drops is not None
            client.drain()
        with palio.sync.connect(address) as client:
            desk = client.subscribe(None, durable="desk")
            assert [event["n"] for event in desk.events(timeout=0.3)] == [3]
            desk.detach()
            history = client.subscribe("n >= 0", since="all")
            assert history.filter == palio.Filter.parse("n >= 0")


def test_questions():
    with (
        testing.broker() as address,
        palio.sync.connect(address) as client,
        palio.sync.connect(address) as other,
    ):
        assert list(client.request({"question": 1})) == []
        subscription = other.subscribe("exists(question)")

        def answer():
            with subscription.next(timeout=10).process() as event:
                event.reply({"answer": event["question"] + 1})

        thread = threading.Thread(target=answer)
        thread.start()
        assert [reply["answer"] for reply in client.request({"question": 1})] == [2]
        thread.join()
        with client.watch("question > 0") as watch:
            assert watch.wanted
            changes = iter(watch)
            assert next(changes)
            subscription.unsubscribe()
            assert not next(changes)
        assert client.trace({"question": 1}).broker == "broker"
        assert len(client.inspect("clients")) == 2
        client.advertise("n >= 0").withdraw()


def test_nobody_is_there():
    with testing.broker() as address:
        pass
    before = threading.active_count()
    with pytest.raises(palio.NotConnected):
        palio.sync.connect(address)
    assert threading.active_count() == before


def test_it_is_closed_once_for_all():
    with testing.broker() as address:
        client = palio.sync.connect(address)
        subscription = client.subscribe("n >= 0")
        waiting = threading.Thread(target=lambda: list(subscription))
        waiting.start()
        client.close()
        waiting.join(timeout=10)
        assert not waiting.is_alive()
        client.close()
        assert client.state.value == "closed"
        for call in (client.flush, lambda: client.publish({"n": 1}), lambda: client.publish_nowait({"n": 1})):
            with pytest.raises(palio.ClientClosed):
                call()


def test_history():
    with testing.broker(journal=True) as address, palio.sync.connect(address) as client:
        client.publish([{"n": n} for n in range(5)])
        assert client.survey("n > 2").count == 2
        assert [event["n"] for event in client.replay("n > 2")] == [3, 4]
