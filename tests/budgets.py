"""Budgets: how long the tests of each folder may take, so that all of them end in five minutes on two cores.

What a run took is printed at its end, and the folders that are over their budget are named. Nothing fails by
it: on a busy machine everything takes longer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import PurePosixPath

import pytest

# Seconds of one worker, of which `make test` has four, on two cores that do nothing else.
WORKERS = 4
BUDGETS = {
    "spark": 200,
    "cli": 160,
    "live": 125,
    "sim": 115,
    "broker": 85,
    "store": 100,
    "matching": 55,
    "attacks": 50,
    "docs": 34,
    "documents": 25,
    "routing": 35,
    "client": 20,
    "model": 22,
    "soap": 20,
    "folders": 10,
    "security": 10,
}
OTHERS = 34  # all other folders together

Seconds = Mapping[str, float]  # by folder


def folder_of(test: str) -> str:
    """The folder that a test's time counts for, from its id."""
    folder = PurePosixPath(test.partition("::")[0]).parts[1]
    return folder if folder in BUDGETS else "others"


def over_budget(seconds: Seconds) -> list[str]:
    """The folders that took longer than they may, the worst first."""
    budgets = BUDGETS | {"others": OTHERS}
    over = {folder: took - budgets[folder] for folder, took in seconds.items() if took > budgets[folder]}
    return [
        f"{folder} took {seconds[folder]:.0f} s of {budgets[folder]} s"
        for folder in sorted(over, key=over.__getitem__, reverse=True)
    ]


def summed(reports: list[pytest.TestReport]) -> Counter[str]:
    """What each folder took: its tests, and what they need to begin and to end."""
    seconds: Counter[str] = Counter()
    for report in reports:
        seconds[folder_of(report.nodeid)] += report.duration  # type: ignore[assignment]
    return seconds


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what each folder took, where a run had several of them, and which are over their budget."""
    reports = [one for kind in terminalreporter.stats.values() for one in kind if hasattr(one, "duration")]
    seconds = summed(reports)
    if len(seconds) > 1:
        took = ", ".join(f"{folder} {amount:.0f}" for folder, amount in seconds.most_common())
        terminalreporter.write_line(f"Seconds of tests by folder: {took}.")
    for line in over_budget(seconds):
        terminalreporter.write_line(f"Over its budget: {line}.")
