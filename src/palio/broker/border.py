"""`Border`: a link to a broker of another domain, which gets and gives only what two filters allow.

Brokers of one domain trust each other; between them there is no border. At a border the *sender* checks every
event that would leave, wherever it comes from: events on their way, requests and replies, pages of a journal.
Questions from outside about what is in the journals are narrowed before they are asked. And what is a domain's
own business stays there: who its clients are, where durable subscriptions live, which brokers are forgotten.
A subscription that wants to read a journal on the other side is known there by its identity alone.

What may not pass is answered by the border itself where somebody would wait for an answer. Every kind of
message is listed, also those that pass as they are; what is not listed does not pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec.structs import replace

from palio.broker.unlisted import UnlistedMessage
from palio.model.errors import FilterTooLarge
from palio.model.filter import Filter
from palio.protocol import inquiries, overlay, peers, sharing
from palio.protocol.durable import letters
from palio.protocol.durable.peers import Ask, Introduction, Marks, Told, TopologyChanged
from palio.protocol.envelope import Envelope
from palio.protocol.reconfiguration import Activate, Flush, Prepare

Changes: TypeAlias = dict[type, Callable[[Any, Filter], Any]]  # by kind: what passes of it, of what is allowed

_EVERYTHING = Filter()
# How brokers are linked, what they want, and how far they are.
_AS_THEY_ARE = (
    *(peers.Joined, peers.Update, peers.Acknowledge, peers.LinkState),
    *(peers.Interest, peers.Known, Marks, inquiries.Probed),
)
# What all brokers of one domain know, and where they are. Who crosses a border is told that there is nothing of
# the kind.
_OF_ONE_DOMAIN = (
    sharing.Share,
    sharing.Verify,
    sharing.Verified,
    overlay.Nearby,
    overlay.Suggest,
    Flush,
    Prepare,
    Activate,
)
# In letters: questions about journals, and where durable subscriptions live.
_QUESTIONS = (letters.Fetch, letters.Browse, letters.Count)
_HOMES = (
    *(letters.MoveOut, letters.MoveIn, letters.MovedIn, letters.Differs, letters.NotHere, letters.Newer),
    *(letters.Arrived, letters.Noted),
)


class Border:
    """What may leave by a link, and come; None for what may not. Raises `UnlistedMessage` for other kinds."""

    def __init__(self, exports: Filter, imports: Filter, withheld: Counter[str]) -> None:
        self._exports = exports
        self._imports = imports
        self._withheld = withheld
        self._changes: Changes = {
            **dict.fromkeys(_AS_THEY_ARE, lambda message, allowed: message),
            peers.Hello: lambda message, allowed: replace(
                message, shared=None, standing=None, reconfigures=False, activates=False
            ),
            peers.Goodbye: lambda message, allowed: replace(message, others=()),
            **dict.fromkeys(_OF_ONE_DOMAIN, lambda message, allowed: None),
            peers.Forward: self._forward,
            inquiries.Enquire: self._question,
            inquiries.Probe: lambda message, allowed: None,
            inquiries.Answered: self._reply,
            Ask: lambda message, allowed: replace(
                message, about=None, readers=tuple([(reader, "") for reader, _ in message.readers])
            ),
            Told: lambda message, allowed: replace(
                message,
                homes=(),
                later=(),
                introductions=tuple([_anonymous(one) for one in message.introductions]),
            ),
            TopologyChanged: lambda message, allowed: replace(message, forgotten=()),
        }
        self._letters: Changes = {
            letters.ReaderEnded: lambda content, allowed: content,
            **dict.fromkeys((letters.Page, letters.Browsed), self._page),
            letters.Counted: lambda content, allowed: replace(
                content, samples=self._seen(content.samples, allowed)
            ),
            **dict.fromkeys(_HOMES, lambda content, allowed: None),
            **dict.fromkeys(_QUESTIONS, lambda content, allowed: content),
        }
        self._letters_coming = self._letters | dict.fromkeys(_QUESTIONS, self._narrowed)

    def leaving(self, message: Any) -> Any:
        """Filters what leaves by the link: what of a message goes out."""
        if type(message) is letters.Carry:
            return self._letter(message, self._letters, self._exports)
        return _changed(message, self._changes, self._exports)

    def coming(self, message: Any) -> Any:
        """Filters what comes by the link: what of a message is taken in."""
        if type(message) is letters.Carry:
            return self._letter(message, self._letters_coming, self._imports)
        return _changed(message, self._changes, self._imports)

    def _letter(self, carry: letters.Carry, changes: Changes, allowed: Filter) -> letters.Carry | None:
        content = _changed(carry.content, changes, allowed)
        return None if content is None else replace(carry, content=content)

    # What is changed on its way

    def _seen(self, envelopes: tuple[Envelope, ...], allowed: Filter) -> tuple[Envelope, ...]:
        kept = tuple([one for one in envelopes if allowed.matches(one.notification)])
        self._withheld["border"] += len(envelopes) - len(kept)
        return kept

    def _forward(self, message: peers.Forward, allowed: Filter) -> peers.Forward | None:
        kept = self._seen(message.envelopes, allowed)
        return peers.Forward(kept) if kept else None

    def _question(self, message: inquiries.Enquire, allowed: Filter) -> inquiries.Enquire | None:
        return message if self._seen((message.envelope,), allowed) else None

    def _reply(self, message: inquiries.Answered, allowed: Filter) -> inquiries.Answered | None:
        if message.problem is not None:  # which no filter can be asked about
            message = replace(message, problem=inquiries.UNTOLD)
        if message.notification is None or allowed.matches(message.notification):
            return message
        self._withheld["border"] += 1
        return replace(message, notification=None) if message.last else None

    def _page(self, content: letters.Page | letters.Browsed, allowed: Filter) -> Any:
        return replace(content, envelopes=self._seen(content.envelopes, allowed))

    def _narrowed(self, content: letters.Fetch | letters.Browse | letters.Count, allowed: Filter) -> Any:
        """A question about what is in the journals here, for what may leave."""
        try:
            exported = content.filter.intersect(self._exports)
            _ = exported.form  # it may have to go on to another broker
        except FilterTooLarge:
            return None
        return replace(content, filter=exported)


def _changed(message: Any, changes: Changes, allowed: Filter) -> Any:
    change = changes.get(type(message))
    if change is None:
        raise UnlistedMessage(message, "border to another domain")
    return change(message, allowed)


def _anonymous(introduction: Introduction) -> Introduction:
    """That a broker was asked for its readers is told, and not which it has: each asks for itself to be one."""
    return Introduction(introduction.broker, ())


def border(exports: Filter | None, imports: Filter | None, withheld: Counter[str]) -> Border | None:
    """The border that two filters make (None is nothing); there is none where everything may pass."""
    exports, imports = exports or Filter(()), imports or Filter(())
    return None if exports == imports == _EVERYTHING else Border(exports, imports, withheld)


def bounced(message: Any, broker: str) -> Any:
    """What the border itself answers to a question that may not pass; None if nobody waits for an answer."""
    if isinstance(message, inquiries.Enquire):
        return inquiries.Answered(message.envelope.origin, message.envelope.sequence, last=True)
    if isinstance(message, inquiries.Probe):
        hop = inquiries.Hop(broker, problem="This broker is in another domain, which does not tell.")
        return inquiries.Probed(message.envelope.origin, message.envelope.sequence, hop)
    return None
