"""Stages of one's own between the operation log and the store: one document in, any number out, or a refusal.

A stage is a function, made by what an entry point of the group `palio.stages` names:

    def make(options: Mapping[str, Any]) -> DocumentStage: ...
    def stage(document: StageDocument) -> Iterable[StageDocument | bytes]: ...

1. What a stage gives goes on to the next one in the order of the settings, and from the last one to be read
   like any document: so nothing that a stage makes is valid because a stage has made it.
2. A stage refuses by raising `DocumentRefused`. Whatever else it raises refuses, too, and is logged: a stage is
   never the end of a broker.
3. What is made of a message has a bound: `MOST_MADE` documents of one by each stage, and of all together as
   many bytes as `StageRoom` says.
4. A stage is called in several threads at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, Final, TypeAlias

import msgspec

from palio.documents.errors import DocumentRefused, DocumentTooLarge
from palio.documents.reserved import RESERVED
from palio.model.errors import PalioError, cut
from palio.model.values import Value

GROUP: Final = "palio.stages"
MOST_MADE: Final = 64  # documents that one stage makes of one
GROWTH: Final = 4  # times as many bytes as a message had
SMALLEST_ROOM: Final = 65_536  # bytes that may be made of any message

log = logging.getLogger("palio.documents")


class StageDocument(msgspec.Struct, frozen=True):
    """A document on its way to the store: its bytes, what its publisher says beside it, and who that is.

    `name` is what it is called meanwhile, in logs; it is the same for all that is made of it.
    """

    content: bytes
    attributes: Mapping[str, Value] = {}
    publisher: str = ""
    name: str = ""


DocumentStage: TypeAlias = Callable[[StageDocument], Iterable["StageDocument | bytes"]]


class StageSetting(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A stage as settings name it: its entry point, what its maker is told, whether publishers wait for it."""

    name: str
    options: dict[str, Any] = {}
    waits: bool = True


class UnknownStage(PalioError):
    """A stage that nothing here brings; `known` are those that are installed."""

    name: str = cut(255)
    known: tuple[str, ...] = ()

    def sentence(self) -> str:
        there = f"there are {', '.join(self.known)}" if self.known else "there is none"
        return f"No package here brings a stage {self.name!r} (entry points of {GROUP}); {there}."


class StageUnusable(PalioError):
    """A stage that could not be made with its options."""

    name: str = cut(255)
    reason: str = cut(500)
    sentence = "The stage {name!r} cannot be used: {reason}"


class StageFailed(PalioError):
    """A stage that has failed at a document, which is refused; the broker's log has why."""

    stage: str = cut(255)
    reason: str = cut(500)
    sentence = "This document is refused: the stage {stage!r} has failed at it ({reason})."


class StageRoom:
    """Bytes that may still be made of one message."""

    def __init__(self, size: int) -> None:
        """Of a message of so many bytes."""
        self.limit = GROWTH * size + SMALLEST_ROOM
        self._left = self.limit

    def take(self, size: int) -> None:
        """Raises `DocumentTooLarge`."""
        self._left -= size
        if self._left < 0:
            raise DocumentTooLarge("bytes that stages make of one message", self.limit)


class StageChain:
    """Stages in their order."""

    def __init__(self, stages: Sequence[tuple[str, DocumentStage]]) -> None:
        """Each with the name by which it is told of."""
        self._stages = tuple(stages)

    def __bool__(self) -> bool:
        return bool(self._stages)

    def run(self, document: StageDocument, room: StageRoom) -> list[StageDocument]:
        """What comes of a document. Raises `DocumentRefused`, `DocumentTooLarge` and `StageFailed`."""
        documents = [document]
        for name, stage in self._stages:
            documents = [made for one in documents for made in _made(name, stage, one, room)]
        return documents


def load_stages(settings: Sequence[StageSetting]) -> StageChain:
    """The stages that settings name. Raises `UnknownStage` and `StageUnusable`."""
    if not settings:
        return StageChain(())
    known = {one.name: one for one in entry_points(group=GROUP)}
    stages: list[tuple[str, DocumentStage]] = []
    for one in settings:
        if one.name not in known:
            raise UnknownStage(one.name, tuple(sorted(known)))
        try:
            stages.append((one.name, known[one.name].load()(dict(one.options))))
        except Exception as problem:  # it is code of others
            raise StageUnusable(one.name, _said(problem)) from problem
    return StageChain(stages)


def _made(name: str, stage: DocumentStage, document: StageDocument, room: StageRoom) -> list[StageDocument]:
    made: list[StageDocument] = []
    try:
        for one in stage(document):
            if len(made) >= MOST_MADE:
                raise DocumentTooLarge(f"documents that the stage {name} makes of it", MOST_MADE)
            made.append(_following(one, document))
            if made[-1].content is not document.content:
                room.take(len(made[-1].content))
    except (DocumentRefused, DocumentTooLarge):
        raise
    except Exception as problem:
        log.exception("A stage has failed.", extra={"stage": name, "document": document.name})
        raise StageFailed(name, _said(problem)) from None
    return made


def _following(made: StageDocument | bytes, document: StageDocument) -> StageDocument:
    """What a stage has made, as it goes on."""
    if isinstance(made, bytes):
        return msgspec.structs.replace(document, content=made)
    if not isinstance(made, StageDocument) or not isinstance(made.content, bytes):
        raise TypeError(f"It gives a {type(made).__name__}, and neither bytes nor a StageDocument.")
    if reserved := RESERVED & made.attributes.keys():
        raise ValueError(f"It gives {min(reserved)}, which comes from reading only.")
    return msgspec.structs.replace(made, publisher=document.publisher, name=document.name)


def _said(problem: Exception) -> str:
    return str(problem) if isinstance(problem, PalioError) else f"{type(problem).__name__}: {problem}"
