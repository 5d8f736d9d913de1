"""Pages of the gateway, for people: the first one, and its description. Nothing is fetched from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from starlette.responses import HTMLResponse, Response

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
h2 { margin-top: 2.5rem; font-size: 1.1rem } code, pre { font: 14px/1.4 ui-monospace, monospace }
h2 b { display: inline-block; min-width: 4.5rem } table { border-collapse: collapse; width: 100% }
td { border-top: 1px solid #ddd; padding: .3rem .6rem .3rem 0; vertical-align: top }
pre { background: #f6f6f4; padding: .8rem; overflow-x: auto } a { color: #8c1c13 }
@media (prefers-color-scheme: dark) {
  body { background: #181818; color: #ddd } pre { background: #222 }
  td { border-color: #333 } a { color: #e8836f }
}
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_START = """
curl{who} -N '{url}/events?filter=price>100'
curl{who} --json '{{"symbol": "ACME", "price": 101.5}}' {url}/events
"""
_TOKEN = ' -H "Authorization: Bearer $TOKEN"'


def page(description: dict[str, Any], url: str, *, known: bool) -> Response:
    """A page for people, from the description for machines. `known`: whoever calls must be."""
    title = escape(description["info"]["title"])
    parts = [
        f"<h1>{title}</h1>{_beginning(url, known=known)}",
        "<p>For machines: <a href=/openapi.json>openapi.json</a>. Clients of the native protocol come by ",
        f"WebSocket at <code>{escape(url.replace('http', 'ws', 1))}/palio</code>.</p>",
    ]
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            parts.append(_operation(method.upper(), path, operation))
    return _page(title, "".join(parts))


def home(broker: str, version: str, links: Iterable[tuple[str, str]], url: str, *, known: bool) -> Response:
    """The first page that somebody sees. Links are paths with a sentence; a version may be kept to oneself."""
    name = escape(broker)
    version = f" Its version is {escape(version)}." if version else ""
    rows = "".join(
        f"<tr><td><a href='{escape(path)}'>{escape(path)}</a><td>{escape(sentence)}" for path, sentence in links
    )
    return _page(
        f"{name} · Palio",
        f"<h1>{name}</h1><p>This is a broker of Palio, which delivers events by their content.{version}</p>"
        f"{_beginning(url, known=known)}<table>{rows}</table>",
        {"Vary": "Accept"},
    )


def _beginning(url: str, *, known: bool) -> str:
    lines = _START.format(url=url, who=_TOKEN if known else "").strip()
    return f"<p>Read events, and publish one, in two terminals:</p><pre>{escape(lines)}</pre>"


def _page(title: str, content: str, more: dict[str, str] | None = None) -> Response:
    head = (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title><style>{_STYLE}</style>"
        "<meta name=viewport content='width=device-width'>"
    )
    headers = {"Content-Security-Policy": _POLICY, "Referrer-Policy": "no-referrer"}
    return HTMLResponse(head + content, headers=headers | (more or {}))


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    rows = [
        (f"<code>{escape(one['name'])}</code> ({one['in']})", escape(one.get("description", "")))
        for one in operation.get("parameters", ())
    ]
    body = operation.get("requestBody", {}).get("content", {})
    rows += [("body", f"<code>{escape(media_type)}</code>") for media_type in body]
    rows += [
        (f"<code>{status}</code>", escape(answer["description"]))
        for status, answer in sorted(operation["responses"].items())
    ]
    table = "".join(f"<tr><td>{name}<td>{text}" for name, text in rows)
    return (
        f"<h2><b>{method}</b> <code>{escape(path)}</code> {escape(operation['summary'])}</h2>"
        f"<p>{escape(operation['description'])}</p><table>{table}</table>"
    )
