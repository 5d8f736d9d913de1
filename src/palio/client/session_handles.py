"""`SessionHandle`: what a client asks for that lasts, such as a subscription, on each new connection."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self

import msgspec

from palio.client.errors import ClientClosed
from palio.model.advertisement import Advertisement
from palio.model.errors import PalioError
from palio.protocol.requests import Advertise, Refused, Release

if TYPE_CHECKING:
    from palio.client.session import ClientSession


class SessionHandle:
    """Something that a session holds under a name, which is its handle at the broker."""

    def __init__(self, session: ClientSession, name: str, number: int | None = None) -> None:
        self._session = session
        self.name = name
        self.number = session.number() if number is None else number  # of the request, on every connection
        self._over = False
        self._ready: asyncio.Future[None] = session.loop.create_future()

    def request(self) -> Any:
        """The request that asks a broker for it."""
        raise NotImplementedError

    def numbered(self) -> Any:
        """The request that asks a broker for it, with its number."""
        return msgspec.structs.replace(self.request(), number=self.number)

    async def ask(self, timeout: float | None, *, ready: bool) -> None:
        """Ask for it, and wait until the broker holds it, or the whole network knows it."""
        self._session.hold(self)
        try:
            await self._session.ask(self.numbered(), on_loss="keep", timeout=timeout)
            if ready:
                await self.ready(timeout)
        except BaseException:
            if self._end():
                self._let_go()
            raise

    async def ready(self, timeout: float | None = None) -> None:
        """Wait until the whole network knows of it. Raises `RequestTimeout`."""
        await self._session.wait_for(f"ready {self.name}", asyncio.shield(self._ready), timeout)

    def answered(self, answer: Any) -> None:
        """Handles an answer of the broker about it."""

    def changed(self, answer: Any) -> None:
        """Handles a change that the broker has made to it."""

    def refused(self, refused: Refused, problem: PalioError) -> None:
        """Handles a refusal: the broker does not take it over from the connection before."""
        self.fail(problem)

    def became_ready(self) -> None:
        if not self._ready.done():
            self._ready.set_result(None)

    def disconnected(self) -> None:
        """Handles a lost connection; `request` is said on the next one."""

    def flush(self) -> None:
        """Send what is still to be said: the client is about to close."""

    async def drain(self) -> None:
        """Take nothing more, and wait until what has come is dealt with."""

    def fail(self, problem: PalioError) -> None:
        """End it because of a problem: it cannot go on."""
        if not self._ready.done():
            self._ready.set_exception(problem)
            self._ready.exception()  # nobody need wait for it
        self._end()

    def closed(self, problem: ClientClosed) -> None:
        """Handles that the client is closed."""
        self.fail(problem)

    def _end(self) -> bool:
        """End it. Returns whether it had not ended before."""
        before, self._over = self._over, True
        self._session.forget(self)
        if not self._ready.done():
            self._ready.cancel()
        return not before

    def _let_go(self) -> None:
        """Tell the broker that it is not needed any more, without waiting."""
        self._session.say(Release(self.name))

    async def release(self) -> None:
        """End it, and have the broker forget it."""
        if self._end():
            await self._session.ask(Release(self.name), on_loss="done")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *problem: object) -> None:
        if not self._session.is_over:
            await self.release()


class Advertised(SessionHandle):
    """An advertisement of a client: what it says that it will publish."""

    def __init__(self, session: ClientSession, name: str, advertisement: Advertisement) -> None:
        super().__init__(session, name)
        self.advertisement = advertisement

    def request(self) -> Any:
        return Advertise(self.name, self.advertisement, not self._ready.done())

    async def withdraw(self) -> None:
        """End it."""
        await self.release()
