"""A PostgreSQL for the durable scenarios: the cluster of the store's tests, but one that syncs."""

from __future__ import annotations

from contextlib import ExitStack


def postgresql(stack: ExitStack, absent: list[str]) -> str | None:
    """The URL of a new database; None, and a reason in `absent`, where there can be none."""
    try:
        from tests.store.cluster import Cluster, reason_to_skip  # noqa: PLC0415 (it needs psycopg)
    except ImportError as problem:
        absent.append(f"PostgreSQL is left out: {problem}")
        return None
    reason = reason_to_skip()
    if reason is not None:
        absent.append(f"PostgreSQL is left out: {reason}")
        return None
    cluster = Cluster(fsync=True)
    stack.callback(cluster.remove)
    cluster.execute("CREATE DATABASE bench")
    return cluster.url("bench")
