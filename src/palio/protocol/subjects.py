"""What a request is called when people are told of it: its kind, and its handle, name or number."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, get_args

from palio.protocol.base import Numbered
from palio.protocol.heartbeat import Ping
from palio.protocol.inquiries import Inspect
from palio.protocol.invocations import Invoke
from palio.protocol.requests import PublishDocuments
from palio.protocol.vocabulary import ClientMessage


def _called(kind: type) -> Callable[[Any], Any] | None:
    """What tells a request from others of its kind, for people."""
    fields = kind.__struct_fields__  # type: ignore[attr-defined]
    names = ["handle", "name", "id", *([] if issubclass(kind, Numbered) else ["number"])]
    return next((attrgetter(name) for name in names if name in fields), None)


def _invoked(request: Invoke) -> str:
    return f"{request.what} {request.number}"


_CALLED = {kind: _called(kind) for kind in (*get_args(ClientMessage), PublishDocuments, Inspect, Ping)} | {
    Invoke: _invoked
}


def subject_of(request: Any) -> str:
    """Such as `attach desk`, `publish 7`, `invoke families.ls 3` or `forget`."""
    kind = type(request)
    called = _CALLED[kind]
    return kind.__name__.lower() if called is None else f"{kind.__name__.lower()} {called(request)}"
