"""`/wsn/simple`: six operations, each answered by one element that says whether it was carried out.

    <result valueACK="true" handle="…"/>
    <result valueACK="false" code="UnknownPath" reason="The path /card/prize selects nothing …"/>

1. An operation that is asked for again says the same again, and does nothing more: handles follow from who asks
   for what. So whoever has got no answer asks again.
2. What is undone (`Unsubscribe`, `DestroyRegistration`) is named by its handle, or by what it was asked for
   with; what is not there is undone already.
3. Documents are sent to consumers that have an address of HTTP. For others they wait, in a durable subscription
   that is called as the handle; whoever takes it up as a retroactive one begins with the current ones.
4. Faults are for what is no request at all, and for who is not known."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from lxml import etree
from starlette.responses import Response

from palio.broker.access.principal import Principal
from palio.broker.documents.knowledge import SelectionQuestion
from palio.broker.documents.requests import may_see
from palio.broker.gateway.credentials import authenticated
from palio.broker.gateway.problems import error_name, status_of
from palio.broker.gateway.subscriptions import Subscriptions, UnknownSubscription
from palio.broker.soap.elements import Element, sayable
from palio.broker.soap.messages import document_of
from palio.broker.soap.names import BR, WSNT
from palio.broker.soap.publishing import SoapPublishing
from palio.broker.soap.service import SoapCall, SoapOperation
from palio.broker.soap.simple_requests import (
    SimpleCondition,
    SimpleSubscription,
    WrongSimpleRequest,
    read_publisher,
    read_subscription,
)
from palio.broker.soap.wsdl import wsdl
from palio.documents.conversion import value_of
from palio.documents.errors import DocumentRefused, UnknownFamily
from palio.documents.family import Family
from palio.documents.selection import Selection
from palio.model.errors import NoSuchSubscription, PalioError
from palio.model.expression import literal

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer
    from palio.broker.gateway.call import Call

SIMPLE = "/wsn/simple"
_PORT = "urn:palio:wsn:simple"
Result: TypeAlias = "Element"
MOST_CURRENT = 100  # documents of one answer
_UNKNOWN = 401  # who is not known gets a fault, because HTTP then asks for a name


class SimpleAnswer(msgspec.Struct, frozen=True):
    """What an operation brings, beside that it was carried out."""

    handle: str = ""
    documents: list[Element] = []


class SimpleOperations:
    """The six operations."""

    def __init__(self, broker: BrokerServer, subscriptions: Subscriptions, publishing: SoapPublishing) -> None:
        self._broker = broker
        self._subscriptions = subscriptions
        self._publishing = publishing

    def operations(self) -> tuple[SoapOperation, ...]:
        return (
            self._operation(BR, "RegisterPublisher", self._register),
            self._operation(BR, "DestroyRegistration", self._withdraw),
            self._operation(WSNT, "Subscribe", self._subscribe),
            self._operation(WSNT, "Unsubscribe", self._unsubscribe),
            self._operation(WSNT, "Notify", self._notify),
            self._operation(WSNT, "GetCurrentMessage", self._get_current),
        )

    async def describe(self, call: Call) -> Response:
        """The WSDL of this, with the address by which the broker was called."""
        ports = {"Simple": self.operations()}
        content = wsdl(ports, {"Simple": f"{call.base}{SIMPLE}"}, "simple_types.xml")
        return Response(content, media_type="text/xml")

    def _operation(
        self, namespace: str, name: str, carry_out: Callable[[SoapCall], Awaitable[SimpleAnswer]]
    ) -> SoapOperation:
        async def answered(call: SoapCall) -> Result:
            try:
                return result(await carry_out(call))
            except PalioError as problem:
                if status_of(problem) == _UNKNOWN:
                    raise
                return result(problem=problem)

        return SoapOperation(namespace, name, _PORT, answered, answer="result")

    # Publishers

    async def _register(self, call: SoapCall) -> SimpleAnswer:
        asked, principal = read_publisher(call.asked), self._principal(call)
        family = self._family(asked.families, principal)
        return SimpleAnswer(await self._broker.documents.publishers.register(principal, family, asked.address))

    async def _withdraw(self, call: SoapCall) -> SimpleAnswer:
        asked, principal = read_publisher(call.asked), self._principal(call)
        try:
            family = self._family(asked.families, principal)
        except UnknownFamily:
            return SimpleAnswer()
        await self._broker.documents.publishers.withdraw(principal, family, asked.address)
        return SimpleAnswer()

    async def _notify(self, call: SoapCall) -> SimpleAnswer:
        await self._publishing.notify(call)
        return SimpleAnswer()

    # Subscriptions

    async def _subscribe(self, call: SoapCall) -> SimpleAnswer:
        asked, principal = read_subscription(call.asked), self._principal(call)
        if not asked.consumer:
            raise WrongSimpleRequest("Subscribe", "It needs a ConsumerReference with an Address.")
        selection = await self._selection(asked, principal)
        handle = self._handle(asked, principal)
        wish: dict[str, Any] = {"id": handle, "filters": [{"palio": selection.filter.source}]}
        if asked.consumer.lower().startswith(("http:", "https:")):
            config = {"contentmode": "document", "retroactive": asked.retroactive}
            wish |= {"sink": asked.consumer, "config": config}
        elif asked.retroactive:
            await self._broker.documents.knowledge.beginnings.begin(handle, principal)
        await self._subscriptions.create(wish, None, call.enter)
        return SimpleAnswer(handle)

    async def _unsubscribe(self, call: SoapCall) -> SimpleAnswer:
        asked, principal = read_subscription(call.asked), self._principal(call)
        handle = asked.handle or self._handle(asked, principal)
        with suppress(NoSuchSubscription, UnknownSubscription):  # it has ended already
            await self._subscriptions.delete(handle, call.enter)
        return SimpleAnswer(handle)

    async def _get_current(self, call: SoapCall) -> SimpleAnswer:
        asked, principal = read_subscription(call.asked), self._principal(call)
        selection = await self._selection(asked, principal)
        question = SelectionQuestion(limit=MOST_CURRENT)
        page = await self._broker.documents.knowledge.select(question, selection.filter, principal)
        found = [document_of(one.envelope.notification) for one in page.documents]
        return SimpleAnswer(documents=[one for one in found if one is not None])

    def _handle(self, asked: SimpleSubscription, principal: Principal) -> str:
        """What a subscription is called: the same for the same."""
        parts = principal.name, asked.consumer, asked.families, asked.conditions
        return f"simple-{blake2b(msgspec.msgpack.encode(parts), digest_size=16).hexdigest()}"

    async def _selection(self, asked: SimpleSubscription, principal: Principal) -> Selection:
        """What is asked for, once all brokers extract its paths."""
        family = self._family(asked.families, principal)
        text = _about(family, *[await self._condition(family, one, principal) for one in asked.conditions])
        return await self._broker.documents.selections.read(text, principal)

    async def _condition(self, family: str, asked: SimpleCondition, principal: Principal) -> str:
        """A condition in the filter language, with the value as one of the kind that the path has."""
        path = f"xpath({literal(asked.expression)})"
        found = await self._broker.documents.selections.look(_about(family, f"exists({path})"), principal)
        [kind] = [one.kind for one in found.paths[family]]
        if asked.value is None:
            return f"{path} = true" if kind == "bool" else f"exists({path})"
        try:
            value = value_of(asked.value, kind, None, asked.expression)
        except DocumentRefused:
            said = f"The values of {asked.expression} are of the kind {kind}, and {asked.value[:100]!r} is not."
            raise WrongSimpleRequest("Subscribe", said) from None
        return f"{path} = {literal(value)}"

    # Families

    def _principal(self, call: SoapCall) -> Principal:
        return authenticated(self._broker, call.credentials)

    def _family(self, named: tuple[str, ...], principal: Principal) -> str:
        """The family that a namespace, a file of its schema, or its name means. Raises `UnknownFamily`."""
        registry = self._broker.documents.families
        seen = [registry.known(name).declared for name in registry.names() if may_see(principal, name)]
        for name in named:
            file = name.rpartition("/")[2]
            for meant in (_by_name(seen, name), _by_namespace(seen, name), _by_schema(seen, file)):
                if len(meant) == 1:
                    return meant[0]
                if len(meant) > 1:
                    said = f"{name!r} may mean the families {', '.join(meant)}; say the name of one as Dialect."
                    raise WrongSimpleRequest("request", said)
        raise UnknownFamily(named[0] if named else "", tuple(one.name for one in seen[:20]))


def _about(family: str, *conditions: str) -> str:
    return f"family {family}" + (f" where {' and '.join(conditions)}" if conditions else "")


def _by_name(families: list[Family], name: str) -> list[str]:
    return [one.name for one in families if one.name == name]


def _by_namespace(families: list[Family], namespace: str) -> list[str]:
    return [one.name for one in families if one.namespace == namespace]


def _by_schema(families: list[Family], file: str) -> list[str]:
    return [one.name for one in families if file in [schema.name for schema in one.schemas[:1]]]


def result(answer: SimpleAnswer | None = None, problem: PalioError | None = None) -> Result:
    """What is said: that something was carried out, or why not."""
    made = etree.Element("result", valueACK="true" if problem is None else "false")
    if answer is not None:
        if answer.handle:
            made.set("handle", answer.handle)
        made.extend(answer.documents)
    if problem is not None:
        made.set("code", error_name(problem))
        made.set("reason", sayable(str(problem)))
    return made
