"""Tests of clients are coroutines: each runs in an event loop of its own, and ends in time."""

import asyncio
import inspect

import pytest

WITHIN = 30.0  # seconds, also on a machine that is busy with other things


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}

    async def main():
        async with asyncio.timeout(WITHIN):
            await pyfuncitem.obj(**arguments)

    asyncio.run(main())
    return True
