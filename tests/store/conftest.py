"""The same tests on every store. `place` is one that nobody has used yet; `url` one in a database."""

from __future__ import annotations

from pathlib import Path

import pytest

from palio.store.memory import MemoryPlace
from tests.store.cluster import Cluster, reason_to_skip
from tests.store.driving import Place

_CLUSTER = pytest.StashKey[Cluster]()


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config) -> Cluster:
    """One for the whole run, also where the tests of another room have imported this fixture."""
    reason = reason_to_skip()
    if reason is not None:
        pytest.skip(reason)
    if _CLUSTER not in pytestconfig.stash:
        pytestconfig.stash[_CLUSTER] = Cluster()
        pytestconfig.add_cleanup(pytestconfig.stash[_CLUSTER].remove)
    return pytestconfig.stash[_CLUSTER]


@pytest.fixture
def database(cluster: Cluster) -> str:
    """The URL of a PostgreSQL database with nothing in it."""
    return cluster.emptied("palio")


@pytest.fixture
def file_url(tmp_path: Path) -> str:
    """The URL of a new SQLite file."""
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture(params=["sqlite", "postgresql", "memory"])
def place(request: pytest.FixtureRequest) -> Place:
    """Where a store of any implementation is."""
    if request.param == "memory":
        return MemoryPlace()
    url: str = request.getfixturevalue("file_url" if request.param == "sqlite" else "database")
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue("file_url" if request.param == "sqlite" else "database")
    return url
