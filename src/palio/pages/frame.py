"""The frame of a page: its head, tiles with what matters most, sections with links to them, and a footer.

It fits every width and both themes, and forbids itself everything: whatever is said on it, nothing is run,
loaded or sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources
from typing import NamedTuple

from palio.pages import wording

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


class Section(NamedTuple):
    """A part of a page; the name is for links. One without a body is left out."""

    name: str
    heading: str
    body: str


class Tile(NamedTuple):
    """A number, large, and what it counts. Its tone is "good", "warn" or none."""

    number: str
    what: str
    more: str = ""
    tone: str = ""


def page(title: str, introduction: str, tiles: Iterable[Tile], sections: Iterable[Section], footer: str) -> str:
    """The whole file. Only the title is escaped here."""
    style = resources.files("palio.pages").joinpath("page.css").read_text(encoding="utf-8")
    shown = [one for one in sections if one.body]
    links = "".join(f'<a href="#{one.name}">{one.heading}</a>' for one in shown)
    bodies = "".join(
        f'<section aria-labelledby="{one.name}"><h2 id="{one.name}">{one.heading}</h2>{one.body}</section>'
        for one in shown
    )
    heading = wording.plain(title, 200)
    return (
        "<!doctype html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f"<title>{heading}</title><style>{style}</style></head><body>"
        f'<header><p class="brand">Palio</p><h1>{heading}</h1>{introduction}'
        f'<ul class="tiles" aria-label="In short">{"".join(map(_tile, tiles))}</ul>'
        f'<nav aria-label="Sections">{links}</nav></header>'
        f'<main>{bodies}</main><footer><div class="card">{footer}</div></footer></body></html>\n'
    )


def _tile(tile: Tile) -> str:
    return (
        f"<li{f' class={chr(34)}{tile.tone}{chr(34)}' if tile.tone else ''}><b>{tile.number}</b>"
        f"<span>{tile.what}</span>{f'<small>{tile.more}</small>' if tile.more else ''}</li>"
    )
