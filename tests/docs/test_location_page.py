"""The page about location: its filters select what it says, its examples run, and its commands are read."""

import re

from palio import Filter, Notification
from tests.docs.filter_examples import check_filters
from tests.docs.python_examples import run_examples


def test_every_filter_selects_what_the_page_says(root):
    assert check_filters((root / "docs" / "location.md").read_text()) > 4


def test_the_examples_run_and_print_what_they_say(root):
    assert run_examples(root / "docs" / "location.md") > 3


def test_the_circle_is_as_wide_as_it_says_and_lies_in_its_box(root):
    page = (root / "docs" / "location.md").read_text()
    [text] = re.findall(r"^lat between .* <= 1000000$", page, re.MULTILINE)
    box, circle = text.split(" and ((", 1)
    inside = Filter.parse("((" + circle)
    north, east = 1000 / 111320, 1000 / 75390
    for share, expected in ((0.99, True), (1.01, False)):
        for lat, lon in ((north, 0), (-north, 0), (0, east), (0, -east)):
            there = Notification({"lat": 47.37 + lat * share, "lon": 8.54 + lon * share})
            assert inside.matches(there) is expected, there
            if expected:
                assert Filter.parse(box).matches(there), there


def test_the_filter_of_the_command_is_one(root):
    page = (root / "docs" / "location.md").read_text()
    [text] = re.findall(r"`palio sub '(.*?)' --durable", page)
    assert Filter.parse(text).matches(Notification({"lat": 47.45, "lon": 8.56}))
