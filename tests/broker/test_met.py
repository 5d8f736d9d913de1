"""Brokers that were met are kept over a restart; a file that is no good is as none."""

from __future__ import annotations

import logging

import pytest

from palio.broker.met import FILE, MetBrokers
from palio.broker.settings import Settings
from palio.protocol.overlay import Contact
from palio.routing.overlay.contacts import MOST_KNOWN
from palio.routing.overlay.settings import OverlaySettings

LOG = logging.getLogger("test")
SOME = (Contact("a", "palio://10.0.0.1:7070", 0.5), Contact("b", "palio://10.0.0.2:7070"))


def kept(folder, clock=lambda: 0.0):
    return MetBrokers(folder / FILE, LOG, clock)


def test_those_who_were_met_are_read_back(tmp_path):
    kept(tmp_path).keep(lambda: SOME)
    assert kept(tmp_path).read() == SOME
    assert (tmp_path / FILE).stat().st_mode & 0o077 == 0


def test_they_are_written_now_and_then_if_they_have_changed_and_at_the_end(tmp_path):
    now = [0.0]
    met, asked = kept(tmp_path, lambda: now[0]), []
    for moment in (0.0, 1.0, 5.0, 12.0):
        now[0] = moment
        met.keep(lambda: asked.append(moment) or SOME)  # noqa: B023
    assert asked == [0.0, 12.0]
    (tmp_path / FILE).unlink()
    met.keep(lambda: SOME, last=True)  # they are those of before
    assert not (tmp_path / FILE).exists()
    met.keep(lambda: SOME[:1], last=True)
    assert kept(tmp_path).read() == SOME[:1]


@pytest.mark.parametrize("content", [b"", b"{", b'[{"broker": 5}]', b"[" * 100_000, b"\xff\xfe", b"[1]"])
def test_a_file_that_is_no_good_is_as_none(tmp_path, content, caplog):
    (tmp_path / FILE).write_bytes(content)
    assert kept(tmp_path).read() == ()
    assert "not known" in caplog.text


def test_as_many_are_taken_as_a_broker_knows(tmp_path):
    kept(tmp_path).keep(lambda: SOME[:1] * 500)
    assert len(kept(tmp_path).read()) == MOST_KNOWN


def test_brokers_with_fixed_links_and_those_without_a_data_folder_keep_none(tmp_path):
    tree = OverlaySettings(kind="tree")
    for settings in (
        Settings(data=str(tmp_path)),
        Settings(data=str(tmp_path), journal=False, overlay=tree),
    ):
        met = MetBrokers.of(settings, LOG)
        met.keep(lambda: SOME)
        assert met.read() == ()
    MetBrokers.of(Settings(data=str(tmp_path), overlay=tree), LOG).keep(lambda: SOME)
    assert (tmp_path / FILE).exists()
