"""What can be wrong with a filter in another dialect."""

from __future__ import annotations

from palio.model.errors import FilterError


class WrongExpression(FilterError):
    """A filter expression that its dialect does not allow; `path` says where."""

    path: str
    reason: str

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}", path=path, reason=reason)


class UnknownDialect(FilterError):
    """A filter dialect that is not spoken here; `path` says where it was named, if within a document."""

    path: str
    dialect: str
    known: tuple[str, ...]

    def __init__(self, path: str, dialect: str, known: tuple[str, ...]) -> None:
        super().__init__(
            f"{path and f'{path}: '}The filter dialect {dialect[:40]!r} is not supported; "
            f"there are {', '.join(known)}.",
            path=path,
            dialect=dialect[:40],
            known=known,
        )
