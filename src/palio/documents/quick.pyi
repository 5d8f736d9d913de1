from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from palio.documents.walk import DocumentWalk
from palio.model.values import Value

class QuickWalk:
    def __init__(
        self,
        walk: DocumentWalk,
        slots: Sequence[tuple[str, bool]],
        moment: Callable[[str], datetime],
        *,
        most_elements: int,
        most_string: int,
        most_values: int,
    ) -> None: ...
    def __len__(self) -> int: ...
    def values(self, root: Any) -> list[Value | None] | None: ...
