"""A broker that cannot start says why, and what to do."""

from __future__ import annotations

import asyncio
import errno
import os
from types import SimpleNamespace

import pytest

from palio.broker.settings import Settings
from palio.cli.brokers.hosting import CannotStart, _start


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_not_taken_for_an_address(code):
    async def start():
        raise OSError(code, os.strerror(code))  # as of a file that is open already, so it has no name

    async def stop():
        pass

    broker = SimpleNamespace(settings=Settings(data="here"), port=0, start=start, stop=stop)
    with pytest.raises(CannotStart, match=r"no room for data in here: .* Make room there, .* --data"):
        asyncio.run(_start(broker))
