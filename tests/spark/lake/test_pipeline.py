"""The way of real data, of other databases and of Spark Connect through the pipeline."""

import gzip
import json
import os
import subprocess
import sys
import textwrap

import pytest

import palio
import palio.spark
import palio.sync
import palio.testing
from palio.spark.lake.archiving import archive
from palio.store.lake.manifests import Lake
from tests.spark.filling import fill
from tests.store.conftest import cluster, database  # noqa: F401 - the same databases

pytest.importorskip("pyspark", reason="pyspark is not installed")


def test_quotes_are_published_archived_and_read(spark, shared, tmp_path):
    source = shared / "data" / "stockquotes.jsonl.gz"
    if not source.exists():
        pytest.skip("the quotes are not here")
    with gzip.open(source, "rt") as lines:
        quotes = [json.loads(line) for line, _ in zip(lines, range(5_000), strict=False)]
    with palio.testing.broker(journal=True) as address:
        with palio.sync.connect(address) as client:
            for first in range(0, len(quotes), 1_000):
                client.publish(quotes[first : first + 1_000])
        place = str(tmp_path / "lake")
        assert archive(spark, address, place).events == len(quotes)
        schema = "symbol string, close double, volume bigint"
        wanted = 'symbol = "AAPL" and close > 30'
        for frame in (
            palio.spark.read(spark, address, schema=schema, filter=wanted),
            palio.spark.history(spark, place, address, schema=schema, filter=wanted),
            palio.spark.history(spark, place, schema=schema).where("symbol = 'AAPL' and close > 30"),
        ):
            found = sorted((row.symbol, row.close, row.volume) for row in frame.collect())
            expected = [(q["symbol"], q["close"], q["volume"]) for q in quotes]
            assert found == sorted(one for one in expected if one[0] == "AAPL" and one[1] > 30)


def test_postgresql_with_a_password_that_no_plan_shows(spark, database, tmp_path):  # noqa: F811
    fill(database, [{"x": n} for n in range(50)], broker="one")
    fill(database, [{"x": n} for n in range(50, 80)], broker="two")
    frame = palio.spark.read(spark, database, schema="x int, _journal string")
    assert sorted(row.x for row in frame.collect()) == list(range(80))
    place = str(tmp_path / "lake")
    assert archive(spark, database, place).events == 80
    assert Lake(place).state().positions == {"one": 50, "two": 30}
    fill(database, [{"x": 80}], broker="two")
    whole = palio.spark.history(spark, place, database, schema="x int", filter="x >= 49")
    assert sorted(row.x for row in whole.collect()) == list(range(49, 81))


CONNECT = """
    import sys
    import palio.spark
    from palio.spark.lake.archiving import archive
    from palio.spark.lake.rewriting import forget
    from palio.spark.runtime.queries import run_to_end
    from palio.model.filter import Filter

    def main():
        url, place, address = sys.argv[1:]
        spark = palio.spark.start(remote="local[2]")
        crossed = palio.spark.Crossed()
        rows = palio.spark.read(spark, url, schema="x int", filter="x < 10", counter=crossed).collect()
        assert (len(rows), crossed.rows, crossed.unconverted) == (10, 10, 0)
        assert archive(spark, url, place).events == 100
        assert palio.spark.history(spark, place, url, schema="x int").where("x >= 90").count() == 10
        assert forget(spark, place, Filter.parse("x < 50")).events == 50
        assert palio.spark.read_lake(spark, place).count() == 50
        palio.spark.write(palio.spark.read(spark, url, schema="x int"), address, sink="connect")
        assert palio.spark.read(spark, address).count() == 100
        stream = palio.spark.read_stream(spark, url, schema="x int")
        run_to_end(
            lambda: palio.spark.write_stream(
                stream, address, sink="stream", checkpoint=place + "-checkpoint", availableNow=True
            ),
            seconds=100,
        )
        assert palio.spark.read(spark, address).count() == 200
        spark.stop()
        print("done")

    main()
"""


@pytest.mark.slow
def test_all_of_it_works_over_spark_connect(java, tmp_path):
    pytest.importorskip("grpc", reason="Spark Connect is not installed")
    url = f"sqlite:///{tmp_path}/palio.db"
    fill(url, [{"x": n} for n in range(100)])
    script = tmp_path / "connect.py"
    script.write_text(textwrap.dedent(CONNECT))
    with palio.testing.broker(journal=True) as address:
        done = subprocess.run(
            [sys.executable, str(script), url, str(tmp_path / "lake"), address],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            env=os.environ | {"PYSPARK_PYTHON": sys.executable},
        )
    assert done.stdout.endswith("done\n"), done.stderr[-4_000:]
