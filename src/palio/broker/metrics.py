"""Metrics for Prometheus, read from the structures that count when somebody asks: nothing is counted twice.

Labels are names of brokers, links and durable subscriptions, never the text of a filter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from palio.routing.overlay.effects import SENTENCES

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer


class Metrics(Collector):
    """All metrics of one broker."""

    def __init__(self, broker: BrokerServer) -> None:
        self._broker = broker

    def describe(self) -> Iterable[Metric]:
        return ()  # everything is found out when it is collected

    def collect(self) -> Iterator[Metric]:
        yield from self._of_broker()
        yield from self._of_links()
        yield from self._of_overlay()
        yield from self._of_reconfiguration()
        yield from self._of_subscriptions()
        yield from self._of_store()
        yield from self._of_documents()
        yield from self._of_gateway()
        yield from self._of_extensions()

    def _of_broker(self) -> Iterator[Metric]:
        name = self._broker.settings.name
        own, router = self._broker.statistics(), self._broker.router.statistics()
        forwarding = router.forwarding
        yield _gauge("palio_connections", "Open connections.", name, own.connections)
        yield _gauge("palio_sessions", "Clients that are connected.", name, own.sessions)
        yield _gauge("palio_links", "Links to neighbours in use.", name, router.links)
        yield _gauge("palio_filters", "Filters in the table.", name, router.filters)
        yield _gauge("palio_start_time_seconds", "When the broker started.", name, own.started)
        counters = {
            "taken": ("Notifications that came in.", forwarding.taken),
            "matched": ("Filters that notifications satisfied.", forwarding.matched),
            "delivered": ("Copies for transient subscriptions.", forwarding.delivered),
            "handed": ("Deliveries of durable subscriptions, also those that came again.", router.handed),
            "forwarded": ("Copies for neighbours.", forwarding.forwarded),
            "wasted": ("Notifications of no use here or behind.", forwarding.wasted),
        }
        for what, (help_text, value) in counters.items():
            yield _counter(f"palio_notifications_{what}", help_text, name, value)
        for metric, help_text, counts in (
            ("palio_dropped", "Events that were dropped, by reason.", own.dropped),
            ("palio_refused_connections", "Connections that were refused, by error.", own.refused),
            ("palio_refused_requests", "Requests that were refused, by error.", own.refused_requests),
        ):
            family = CounterMetricFamily(metric, help_text, labels=("broker", "reason"))
            for reason, count in sorted(counts.items()):
                family.add_metric((name, reason), count)
            yield family

    def _of_links(self) -> Iterator[Metric]:
        labels = ("broker", "link")
        sent = CounterMetricFamily("palio_link_sent_bytes", "Bytes sent to a neighbour.", labels=labels)
        received = CounterMetricFamily("palio_link_received_bytes", "Bytes of a neighbour.", labels=labels)
        waiting = GaugeMetricFamily("palio_link_waiting_bytes", "Bytes that wait for it.", labels=labels)
        help_text = "Seconds for which it was not read from: it sends more than is taken."
        throttled = CounterMetricFamily("palio_link_throttled_seconds", help_text, labels=labels)
        help_text = "Seconds from a heartbeat to its answer, smoothed."
        round_trip = GaugeMetricFamily("palio_link_round_trip_seconds", help_text, labels=labels)
        for link, connection in self._broker.links.items():
            statistics = connection.statistics()
            key = (self._broker.settings.name, link)
            sent.add_metric(key, statistics.outgoing.bytes)
            received.add_metric(key, statistics.received_bytes)
            waiting.add_metric(key, statistics.outgoing.waiting_bytes)
            throttled.add_metric(key, statistics.throttled)
            if statistics.round_trip is not None:
                round_trip.add_metric(key, statistics.round_trip)
        yield from (sent, received, waiting, throttled, round_trip)

    def _of_overlay(self) -> Iterator[Metric]:
        name, overlay = self._broker.settings.name, self._broker.router.overlay()
        yield _gauge("palio_overlay_brokers", "Brokers of this part of the network, about.", name, overlay.size)
        help_text = "Whether this broker looks for another part of the network."
        yield _gauge("palio_overlay_looking", help_text, name, overlay.looking)
        changes = CounterMetricFamily(
            "palio_overlay_changes", "What the overlay has done.", labels=("broker", "what")
        )
        for what in ("asked", "taken", "linked", "lost", "given_up", "damped", "beyond", "repairs"):
            changes.add_metric((name, what), getattr(overlay, what))
        help_text = "What has happened to the links of this broker, and to its part of the network."
        events = CounterMetricFamily("palio_overlay_events", help_text, labels=("broker", "what"))
        for what in SENTENCES:
            events.add_metric((name, what), self._broker.overlay_news.counts[what])
        refused = CounterMetricFamily(
            "palio_overlay_refused", "Links that others have refused.", labels=("broker", "reason")
        )
        for reason, count in sorted(overlay.refused.items()):
            refused.add_metric((name, reason), count)
        yield from (changes, events, refused)
        help_text = "Seconds that this broker was without a parent before it found one."
        yield _counter("palio_overlay_repair_seconds", help_text, name, overlay.repair_seconds)

    def _of_reconfiguration(self) -> Iterator[Metric]:
        name, reconfiguration = self._broker.settings.name, self._broker.router.reconfiguration()
        help_text = "Rows of lost links that are parked."
        yield _gauge("palio_reconfiguration_parked_rows", help_text, name, reconfiguration.rows)
        lost = CounterMetricFamily(
            "palio_reconfiguration_links", "What became of lost links.", labels=("broker", "what")
        )
        for what in ("parked", "flushed", "expired"):
            lost.add_metric((name, what), getattr(reconfiguration, what))
        yield lost

    def _of_subscriptions(self) -> Iterator[Metric]:
        durable = self._broker.router.durable
        if durable is None:
            return
        labels = ("broker", "subscription")
        pending = GaugeMetricFamily("palio_subscription_pending", "Not acknowledged yet.", labels=labels)
        oldest = GaugeMetricFamily(
            "palio_subscription_oldest_seconds", "Age of the oldest of these.", labels=labels
        )
        dead = GaugeMetricFamily("palio_subscription_dead_letters", "Dead letters.", labels=labels)
        done = CounterMetricFamily("palio_subscription_delivered", "Acknowledged.", labels=labels)
        now = self._broker.now()
        for one in durable.statistics().subscriptions:
            key = (self._broker.settings.name, one.durable)
            pending.add_metric(key, one.pending)
            oldest.add_metric(key, now - one.oldest if one.oldest is not None else 0.0)
            dead.add_metric(key, one.dead_letters)
            done.add_metric(key, one.delivered)
        yield from (pending, oldest, dead, done)

    def _of_store(self) -> Iterator[Metric]:
        if self._broker.store is None:
            return
        name, statistics = self._broker.settings.name, self._broker.store.statistics()
        yield _gauge("palio_store_queued_bytes", "Bytes that wait for the disk.", name, statistics.queued_bytes)
        yield _gauge("palio_journal_head", "The last sequence of the journal.", name, statistics.head)
        yield _counter("palio_store_commits", "Group commits.", name, statistics.commits)
        help_text = "Events, letters and subscriptions that could not be read and were put aside."
        yield _gauge("palio_store_aside", help_text, name, statistics.aside)
        if (lake := self._broker.store.lake_statistics()) is not None:
            yield _counter("palio_lake_pages", "Pages of history that were read in the lake.", name, lake.pages)
            yield _counter("palio_lake_events", "Events that were found there.", name, lake.events)
            yield _counter("palio_lake_failures", "Pages that could not be read there.", name, lake.failures)

    def _of_documents(self) -> Iterator[Metric]:
        if (waiting := self._broker.documents.waiting_bytes) is not None:
            help_text = "Bytes of confirmed documents that wait for stages."
            yield _gauge("palio_documents_waiting_bytes", help_text, self._broker.settings.name, waiting)

    def _of_gateway(self) -> Iterator[Metric]:
        statistics = self._broker.gateway_statistics()
        name = self._broker.settings.name
        requests = CounterMetricFamily(
            "palio_http_requests", "Requests, by route and status.", labels=("broker", "route", "status")
        )
        pushes = CounterMetricFamily(
            "palio_pushes", "Events that webhooks took, or why not.", labels=("broker", "result")
        )
        for (route, status), count in sorted(statistics.requests.items()):
            requests.add_metric((name, route, str(status)), count)
        for result, count in sorted(statistics.pushes.items()):
            pushes.add_metric((name, result), count)
        yield from (requests, pushes)
        yield _gauge("palio_http_streams", "Event streams that are open.", name, statistics.streams)
        yield _gauge("palio_http_subscriptions", "Subscriptions as resources.", name, statistics.subscriptions)
        help_text = "Event streams that were not read any more."
        yield _counter("palio_http_streams_cut_off", help_text, name, statistics.streams_cut_off)

    def _of_extensions(self) -> Iterator[Metric]:
        labels = ("broker", "extension", "what")
        help_text = "Mistakes of extensions, by what has failed."
        failures = CounterMetricFamily("palio_extension_failures", help_text, labels=labels)
        for (extension, what), count in sorted(self._broker.extensions.failures.items()):
            failures.add_metric((self._broker.settings.name, extension, what), count)
        yield failures


def _counter(metric: str, help_text: str, broker: str, value: float) -> Metric:
    family = CounterMetricFamily(metric, help_text, labels=("broker",))
    family.add_metric((broker,), value)
    return family


def _gauge(metric: str, help_text: str, broker: str, value: float) -> Metric:
    family = GaugeMetricFamily(metric, help_text, labels=("broker",))
    family.add_metric((broker,), value)
    return family
