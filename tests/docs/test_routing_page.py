"""`docs/routing.md` tells the truth: its worked example is played, its pictures exist, its diagrams end."""

from __future__ import annotations

import re

import pytest

from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.protocol.peers import Forward, LinkKind, Update
from palio.protocol.requests import Publish, Subscribe, Unsubscribe
from palio.routing import Configuration, Router
from palio.routing.effects import Deliver, Send
from palio.routing.occurrences import LinkUp, Open


class Line:
    """Three brokers in a row, and the words of the page's table for what crosses their links."""

    def __init__(self) -> None:
        self.routers = {name: Router(Configuration(broker=name)) for name in "123"}
        self.rows: dict[tuple[str, str, int], Filter] = {}
        self.said: list[str] = []
        for one, other in ("12", "23"):
            up = LinkUp(LinkKind.PEER, 1.0)
            first = self.routers[one].handle(up, other, 0.0)
            second = self.routers[other].handle(up, one, 0.0)
            self.carry_out(one, first)
            self.carry_out(other, second)

    def do(self, broker: str, session: str, message: object) -> list[str]:
        self.said = []
        self.carry_out(broker, self.routers[broker].handle(message, session, 0.0))
        return self.said

    def carry_out(self, broker: str, effects: list[object]) -> None:
        for effect in effects:
            if isinstance(effect, Deliver):
                self.said.append(f"{effect.session} gets it")
            elif isinstance(effect, Send):
                self.note(broker, effect.broker, effect.message)
                after = self.routers[effect.broker].handle(effect.message, broker, 0.0)
                self.carry_out(effect.broker, after)

    def note(self, source: str, target: str, message: object) -> None:
        if isinstance(message, Forward):
            self.said.append(f"{source}→{target}: the event")
        elif isinstance(message, Update):
            parts = []
            for number, filter in message.add:
                self.rows[source, target, number] = filter
                parts.append(f"+ {filter}")
            parts += [f"− {self.rows.pop((source, target, number))}" for number in message.remove]
            if parts:
                self.said.append(f"{source}→{target}: {', '.join(parts)}")


@pytest.fixture(scope="module")
def page(root):
    return (root / "docs" / "routing.md").read_text(encoding="utf-8")


def test_the_worked_example_happens_as_told(page):
    line = Line()
    for broker, session in (("1", "Ann"), ("1", "Bob"), ("3", "Pat")):
        line.do(broker, session, Open())
    told = re.findall(r"^\| \d+ \| (.+?) \| (.+?) \|$", page, re.MULTILINE)
    assert len(told) == 6
    for what, expected in told:
        who, verb, content = re.fullmatch(r"(\w+) (subscribes|unsubscribes|publishes) `(.+)`", what).groups()
        broker = "3" if who == "Pat" else "1"
        message = {
            "subscribes": lambda text: Subscribe(text, Filter.parse(text)),
            "unsubscribes": lambda text: Unsubscribe(Filter.parse(text)),
            "publishes": lambda text: Publish((Notification.from_json(text),)),
        }[verb](content)
        said = line.do(broker, who, message)
        assert expected.replace("`", "") == ("; ".join(said) or "nothing crosses a link"), what


def test_all_pictures_exist(page, root):
    pictures = re.findall(r"!\[.*?\]\((.+?)\)", page)
    assert pictures
    for picture in pictures:
        assert (root / "docs" / picture).is_file(), picture


def test_diagrams_are_closed(page):
    assert page.count("```mermaid") >= 5
    assert page.count("```") % 2 == 0
