"""What the documentation names is there, where its readers look for it."""

import importlib
import re

import pytest

import palio
import palio.cli.main  # with it, all rooms whose errors the documentation may name
import palio.client
import palio.sync
from palio.model.errors import PalioError

# Where the names of a page are looked for. A program that uses the client needs nothing but `palio`.
DOCUMENTS = (
    *("palio", "palio.documents", "palio.broker.documents.readers"),
    *("palio.broker.documents.errors", "palio.broker.documents.handing_on", "palio.documents.stages"),
)
ROOMS = {
    "http.md": (*DOCUMENTS, "palio.broker.gateway.origin_guard"),
    "bindings.md": DOCUMENTS,
    "xml.md": DOCUMENTS,
    "spark.md": ("palio", "palio.spark", "palio.spark.errors"),
    "operations.md": (
        *("palio", "palio.broker.accounts", "palio.broker.limits"),
        *("palio.routing.durable.leaving", "palio.routing.durable.relay"),
    ),
    "overlay.md": ("palio.broker.dialling", "palio.broker.limits", "palio.broker.link_requests"),
    "store.md": ("palio", "palio.store"),
    "security.md": (
        *("palio", "palio.broker.accounts", "palio.broker.limits", "palio.broker.dialling"),
        *("palio.protocol.frames", "palio.broker.gateway.protocols"),
    ),
}
# palio.toml is a file, palio.event a kind of CloudEvents, palio.stages a group of entry points.
FILES = ("toml", "db", "event", "stages")
NOTICES = (
    "notice",
    "origin",
    "after",
    "upto",
    "why",
    "noticed",
    "principal",
    "error",
    "forgotten",
    "subscriptions",
    "overlay",
)  # what a broker publishes


def pages(root):
    return {file.name: file.read_text() for file in [*sorted((root / "docs").glob("*.md")), root / "README.md"]}


def resolved(dotted):
    """The thing that a dotted name means, or None."""
    first, *rest = dotted.split(".")
    found = importlib.import_module(first)
    path = first
    for part in rest:
        path = f"{path}.{part}"
        if not hasattr(found, part):
            try:
                importlib.import_module(path)
            except ModuleNotFoundError as problem:
                if problem.name != path:  # it is there, and needs what is not installed
                    return problem
                return None
        found = getattr(found, part)
    return found


def all_errors(kind=PalioError):
    for one in kind.__subclasses__():
        yield one.__name__
        yield from all_errors(one)


def test_what_is_named_with_its_room_is_there(root):
    seen = set()
    for page, text in pages(root).items():
        for name in re.findall(r"\bpalio(?:\.[A-Za-z_]+)+", text):
            if name.split(".")[1] not in FILES + NOTICES and name not in seen:
                seen.add(name)
                assert resolved(name) is not None, f"{page} names {name}"
    assert len(seen) > 20


def test_every_error_that_a_page_names_is_where_its_readers_look(root):
    for room in {room for rooms in ROOMS.values() for room in rooms}:
        importlib.import_module(room)
    errors = set(all_errors())
    seen = set()
    for page, text in pages(root).items():
        for name in set(re.findall(r"`([A-Z][A-Za-z]+)`", text)) & errors:
            seen.add(name)
            rooms = [importlib.import_module(room) for room in ROOMS.get(page, ("palio",))]
            assert any(hasattr(room, name) for room in rooms), f"{page} names {name}"
    assert len(seen) > 20


@pytest.mark.parametrize("kind", [palio.Client, palio.Event, palio.Subscription])
def test_what_is_called_on_the_page_of_the_client_is_there(root, kind):
    """`client.publish`, `event.ack` and the like, also where they are only named."""
    page = pages(root)["client.md"] + pages(root)["delivery.md"]
    name = kind.__name__.lower()
    named = set(re.findall(rf"\b{name}\.([a-z_]+)", page)) - {"md"}
    assert len(named) > 1
    members = {*dir(kind), *dir(getattr(palio.sync, kind.__name__))}
    assert named <= members, named - members


def test_all_of_the_client_is_in_palio():
    assert set(palio.client.__all__) <= set(palio.__all__)
