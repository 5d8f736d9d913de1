"""One session for the whole run: a JVM takes seconds to start, so all tests of Spark share one worker's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from palio.spark.errors import JavaMissing
from palio.spark.runtime.java import java_version
from tests.cli.conftest import command, environment  # noqa: F401 - the program is the same in this folder
from tests.client.conftest import pytest_pyfunc_call  # noqa: F401 - and so are tests that are coroutines

SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.maxResultSize": "16m",  # what grows with the data has no business on the driver
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.adaptive.enabled": "false",  # plans of a few rows are not worth a second thought
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder go to one worker of pytest-xdist (`--dist loadgroup`)."""
    for item in items:
        if "tests/spark/" in item.nodeid.replace("\\", "/"):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def java() -> str:
    """The version of Java; without one the test is left out, saying so."""
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    try:
        return java_version()
    except JavaMissing as problem:
        pytest.skip(str(problem))


@pytest.fixture(scope="session")
def spark(java, tmp_path_factory):
    """A classic session on two cores."""
    from palio.spark.runtime.session import session

    folder = tmp_path_factory.mktemp("spark")
    settings = SETTINGS | {
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    with session("local[2]", name="tests", settings=settings) as found:
        yield found


@pytest.fixture
def not_synced(monkeypatch):
    """Says what lies below a folder and was not synced from here on."""
    fsync, done = os.fsync, set()

    def noted(handle):
        done.add(os.fstat(handle).st_ino)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noted)

    def missing(folder: Path) -> list[str]:
        return [str(path) for path in folder.rglob("*") if path.stat().st_ino not in done]

    return missing
