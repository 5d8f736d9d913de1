"""The end of `palio demo`: what Spark finds in the journals is what the network delivered, and it says so."""

from __future__ import annotations

import subprocess
import sys

import pytest

from palio.cli.demo.pipeline import Delivered, _difference


def demo(report, root, environment, **more) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "palio.cli.main", "demo", "--part", "pipeline", "--report", str(report)],
        cwd=root, env=environment | more, capture_output=True, encoding="utf-8", timeout=600, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_deliveries_and_matches_are_compared_and_a_report_stays(java, root, environment, tmp_path):
    report = tmp_path / "report.html"
    done = demo(report, root, environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "What Spark finds is exactly what the network delivered, and what the lookout saw." in done.stdout
    assert "made-up market" in report.read_text()


@pytest.mark.slow
def test_without_java_one_sentence_says_so(root, environment, tmp_path):
    done = demo(tmp_path / "report.html", root, environment, JAVA_HOME=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "It is left out here. Spark needs Java 17 or later" in done.stdout
    assert "Every delivery was as the filters say" in done.stdout


def test_a_difference_is_found_whoever_has_more():
    among = frozenset({"t1", "t2", "t3"})
    delivered = [Delivered("x > 1", frozenset({"t1", "t2", "t9"}), among)]
    assert _difference(delivered, {0: {"t1", "t2"}}) is None
    assert _difference(delivered, {0: {"t1"}}) == "Only the network delivered t2 for the subscription 'x > 1'."
    assert (
        _difference(delivered, {0: {"t1", "t2", "t3"}}) == "Only Spark found t3 for the subscription 'x > 1'."
    )
