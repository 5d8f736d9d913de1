"""Filters on a page, each with events that it selects and events that it does not."""

from __future__ import annotations

import re

from palio import Filter, Notification


def blocks(page: str, language: str) -> list[str]:
    """The blocks of a page that are in this language."""
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


def check_filters(page: str) -> int:
    """Hold each filter of a page against its events. Returns how many there are."""
    found = blocks(page, "filter")
    for block in found:
        text, *cases = block.splitlines()
        f = Filter.parse(text)
        assert cases, text
        for case in cases:
            answer, content = case.split(maxsplit=1)
            n = Notification.from_json(content)
            assert f.matches(n) is {"yes": True, "no": False}[answer], f"{text} on {content}"
            assert bool(f.explain(n)) is f.matches(n)
    return len(found)
