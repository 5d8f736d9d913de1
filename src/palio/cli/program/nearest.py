"""Which command is meant by a word that is none: what other systems call it, or what it is a slip of."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

# As Kafka, NATS, MQTT, RabbitMQ, Redis and others call what we call so. Also in slips of these.
SYNONYMS = {
    **dict.fromkeys(("subscribe", "listen", "consume", "consumer", "receive", "follow", "tail"), "sub"),
    **dict.fromkeys(("publish", "send", "emit", "produce", "producer", "post"), "pub"),
    **dict.fromkeys(("subscriptions", "subscribers"), "subs"),
    **dict.fromkeys(("serve", "server", "start", "broker", "daemon"), "up"),
    **dict.fromkeys(("cluster", "brokers"), "network"),
    **dict.fromkeys(("tokens", "login"), "token"),
    **dict.fromkeys(("acl", "grant", "permissions"), "rights"),
    **dict.fromkeys(("settings", "configure"), "config"),
    **dict.fromkeys(("connect", "contexts"), "context"),
    **dict.fromkeys(("advertisement", "announce"), "advertise"),
    **dict.fromkeys(("ask", "call", "rpc"), "request"),
    **dict.fromkeys(("answer", "respond"), "reply"),
    **dict.fromkeys(("history", "rewind"), "replay"),
    **dict.fromkeys(("route", "traceroute"), "trace"),
    **dict.fromkeys(("why", "evaluate", "test"), "explain"),
    **dict.fromkeys(("cep", "detect"), "patterns"),
    **dict.fromkeys(("compare", "subsumes"), "covers"),
    **dict.fromkeys(("check", "validate", "verify"), "lint"),
    **dict.fromkeys(("status", "info", "statistics", "metrics"), "stats"),
    **dict.fromkeys(("neighbours", "neighbors", "links", "nodes", "members"), "peers"),
    **dict.fromkeys(("connections", "sessions"), "clients"),
    **dict.fromkeys(("monitor", "watch"), "top"),
    **dict.fromkeys(("deadletters", "dead-letters", "deadletter", "dead-letter", "rejected"), "dlq"),
    **dict.fromkeys(("log", "journals", "trim"), "journal"),
    **dict.fromkeys(("simulate", "simulator", "simulation"), "sim"),
    **dict.fromkeys(("benchmark", "measure"), "bench"),
    **dict.fromkeys(("archive", "lake", "backfill"), "spark"),
    **dict.fromkeys(("diagnose", "health"), "doctor"),
}


def nearest(word: str, names: Iterable[str]) -> list[str]:
    """The commands that may be meant, the likeliest first; none rather than one that is far off."""
    names = list(names)
    synonyms = {synonym: name for synonym, name in SYNONYMS.items() if name in names}
    word = word.lower()
    if word in synonyms:
        return [synonyms[word]]
    close = get_close_matches(word, [*names, *synonyms], n=3, cutoff=0.7)
    return list(dict.fromkeys(synonyms.get(one, one) for one in close))
