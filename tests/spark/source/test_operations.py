"""The operation log in Spark: all rows of all brokers, as the store says."""

from __future__ import annotations

import pytest

import palio.spark
from palio.spark.errors import WrongOption
from palio.store.operation_reading import OperationQuery, OperationReader
from tests.store.driving import Driven
from tests.store.test_operations import logging, row


def test_all_rows_are_a_table(spark, tmp_path):
    url = f"sqlite:///{tmp_path}/palio.db"
    with Driven(url) as driven:
        driven.do(
            *[logging(n, row(1_700_000_000.25 + n, "publish" if n % 3 else "attach")) for n in range(1, 31)]
        )
    table = palio.spark.operations(spark, url, rows_per_partition=12)
    found = sorted(table.collect(), key=lambda one: one.number)
    expected = OperationReader(url).page(OperationQuery(), 0, 100).rows
    assert [(one.number, one.time.timestamp(), one.kind, one.principal, one.bytes) for one in found] == [
        (one.number, one.time, one.kind, one.principal, one.bytes) for one in expected
    ]
    assert {one.journal for one in found} == {"b"}
    counts = {one.kind: one["count"] for one in table.groupBy("kind").count().collect()}
    assert counts == {"publish": 20, "attach": 10}


def test_a_broker_is_not_a_store():
    with pytest.raises(WrongOption, match="palio audit"):
        palio.spark.operations(None, "palio://127.0.0.1:7070")
