"""The page about reconfiguration: its commands run, its example is counted, its names and defaults exist."""

from __future__ import annotations

import re
import shlex
from typing import get_args

import msgspec
import pytest

from palio.routing.reconfiguration.settings import Protocol, ReconfigurationSettings
from tests.cli.conftest import command
from tests.routing.reconfiguration.scenes import subscribed, tree_world

__all__ = ["command"]


@pytest.fixture(scope="module")
def page(root) -> str:
    return (root / "docs" / "reconfiguration.md").read_text()


def test_every_protocol_is_explained(page):
    assert tuple(re.findall(r"^\| `(\w+)` \| they", page, re.MULTILINE)) == get_args(Protocol)


def test_the_settings_are_those_that_there_are(page):
    told = dict(re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", page, re.MULTILINE))
    assert told == {name: str(value) for name, value in msgspec.to_builtins(ReconfigurationSettings()).items()}


@pytest.mark.parametrize(("protocol", "added", "removed"), [("strawman", 3, 2), ("deferred", 1, 0)])
def test_ann_s_link_costs_what_the_page_says(protocol, added, removed):
    world = tree_world((("1", "2"), ("2", "3"), ("3", "4"), ("1", "5")), protocol)
    subscribed(world, ("1", "p"))
    world.cut("1", "2")
    world.after(1.0, world.link, "5", "2")
    world.run()
    assert (world.said["added"], world.said["removed"]) == (added, removed)


def test_the_command_runs(page, command):
    (shown,) = re.findall(r"<!-- executed -->\n```sh\n(.*?)\n```", page, re.DOTALL)
    assert command(*shlex.split(shown)[1:]).exit_code == 0
