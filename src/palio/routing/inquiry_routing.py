"""Inquiries (see `protocol.inquiries`) at one broker, as the router sees them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from palio.protocol.inquiries import Answered, Enquire, Probe, Probed, Request, Respond, Trace, Watch
from palio.routing.core import Core
from palio.routing.echoes import Echoes
from palio.routing.requests import Requests
from palio.routing.tracing import Tracing
from palio.routing.watching import Watching

# None of these changes who wants what, or where they are.
PASSING = frozenset((Trace, Request, Respond, Watch, Probe, Probed, Enquire, Answered))


class InquiryRouting:
    """This broker's part in requests, traces and watches."""

    def __init__(self, core: Core) -> None:
        self._echoes = echoes = Echoes(core)
        self._requests = requests = Requests(core, echoes)
        self.watching = Watching(core, core.overlap)
        tracing = Tracing(core, echoes)
        self.on_timer = echoes.on_timer
        self.statistics = echoes.statistics
        self.link_gained = self.watching.links_changed
        self.handlers: dict[type, Callable[[str, Any], None]] = {
            Trace: tracing.ask,
            Request: requests.ask,
            Respond: requests.respond,
            Watch: self.watching.watch,
        }
        self.link_handlers: dict[type, Callable[[str, Any], None]] = {
            Probe: tracing.probe,
            Probed: tracing.probed,
            Enquire: requests.enquire,
            Answered: requests.answered,
        }

    def link_lost(self, broker: str) -> None:
        self._echoes.link_lost(broker)
        self.watching.links_changed()

    def session_closed(self, session: str) -> None:
        """Forgets the questions of a session that has ended; it will not reply to those of others."""
        self._echoes.session_closed(session)
        self._requests.session_closed(session)
        self.watching.session_closed(session)
