"""What bytes from outside meet first, each as a function that bears whatever it is given.

The answer is a value or one of our errors; and what was read can be written and read again, with the same
meaning. `python -m tests.fuzz` lets atheris choose bytes, and the tests run the corpus.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import h11
from starlette.requests import Request

from palio.broker.access import Access
from palio.broker.access.tokens import Token, check_token
from palio.broker.gateway.call import Call
from palio.broker.gateway.credentials import bearer
from palio.broker.gateway.origin_guard import OriginGuard
from palio.broker.gateway.problems import problem_response
from palio.broker.gateway.protocols import MAX_HEAD
from palio.broker.gateway.publishing import read_properties
from palio.broker.gateway.settings import GatewaySettings
from palio.broker.gateway.sinks import require_form
from palio.broker.gateway.stream_request import read_position, read_wanted, write_position
from palio.broker.gateway.subscriptions import filter_of, read_definition
from palio.broker.soap.content import content_filter
from palio.broker.soap.envelope import SoapVersion, read_envelope, write_fault
from palio.broker.soap.termination import read_term
from palio.broker.soap.topics import topic_filter
from palio.broker.soap.username_token import UsernameTokens
from palio.documents import (
    DocumentReader,
    Family,
    FamilyPath,
    FamilyPaths,
    PathTyping,
    SchemaFile,
    UnknownPath,
    read_selection,
)
from palio.documents.event_format import XML_FORMATS
from palio.documents.extraction import Extraction
from palio.documents.finding import PathFinding
from palio.documents.libxml import etree_module
from palio.documents.parsing import parse_document
from palio.documents.schemas import read_sources
from palio.documents.xpath import XPath, read_path
from palio.documents.xpath.path import naming_of
from palio.language import read_filter
from palio.matching import MatchIndex
from palio.model import jsontext
from palio.model.advertisement import Advertisement
from palio.model.cloudevents import as_event
from palio.model.effort import Meter, metered
from palio.model.errors import PalioError, TooHard
from palio.model.filter import Filter
from palio.model.formats import BINARY, STRUCTURED, Format, Message, Reading, read_message
from palio.model.notification import Notification
from palio.model.patterns.pattern import Pattern
from palio.protocol.conversation import Conversation
from palio.protocol.encoding import UnreadableMessage, decode, encode, refusal_of
from palio.protocol.envelope import Envelope
from palio.protocol.frames import GREETING_FRAME, Frames, frame
from palio.protocol.greeting import PROTOCOL, Greet, Welcome
from palio.protocol.heartbeat import Bye, Heartbeat, Pong
from palio.protocol.peers import Forward
from palio.protocol.requests import Publish, Refused
from palio.protocol.vocabulary import FROM_CLIENTS

_SECRET = "A" * 43
_TOKENS = {"0123456789ab": Token("0123456789ab", "desk", hashlib.sha256(_SECRET.encode()).hexdigest(), 0.0)}
_USERNAMES = UsernameTokens(Access(Path("there-is-no-such-folder"), lambda: 0.0), lambda: 0.0)
_GUARD = OriginGuard(GatewaySettings(origins=("https://shop.example",), hosts=("broker",)), local=True)
_READING = Reading(by_source=True, most=50_000)
_STEPS = 5_000_000
_Read = TypeVar("_Read")
_CARD = Family(
    "card",
    "urn:card",
    "card",
    {"c": "urn:card"},
    key=("/c:card/c:code",),
    paths=(
        FamilyPath("/c:card/c:code", name="code"),
        FamilyPath("/c:card/c:brand", many=True, name="brand"),
        FamilyPath("/c:card/c:price", "float", name="price"),
        FamilyPath("/c:card/@sold", "bool"),
        FamilyPath("/c:card/c:since", "time"),
        FamilyPath("//c:brand[@x = '1']", "int", many=True),
        FamilyPath("count(//*)", "int"),
    ),
)
_READER = DocumentReader(_CARD)
_CARDS = FamilyPaths(_CARD)
_CARD_SCHEMA = b"""
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:c="urn:card" targetNamespace="urn:card"
 elementFormDefault="qualified">
 <xs:element name="card"><xs:complexType><xs:sequence>
  <xs:element name="code" type="xs:string"/>
  <xs:element ref="c:brand" minOccurs="0" maxOccurs="unbounded"/>
  <xs:element name="price" type="xs:decimal"/>
  <xs:element name="since" type="xs:dateTime"/>
 </xs:sequence><xs:attribute name="sold"/></xs:complexType></xs:element>
 <xs:element name="brand"><xs:complexType mixed="true"><xs:choice minOccurs="0" maxOccurs="unbounded">
  <xs:element name="b"/><xs:element ref="c:brand"/><xs:element ref="c:card"/>
 </xs:choice><xs:attribute name="x"/></xs:complexType></xs:element>
</xs:schema>
"""
_CARD_TYPING = PathTyping(
    "card", read_sources((SchemaFile("card.xsd", _CARD_SCHEMA),)), "urn:card", "card", naming_of(_CARD.prefixes)
)
_CARD_TREE = parse_document(
    b'<card xmlns="urn:card" sold="1"><code>c1</code><brand x="1">Acme</brand><brand>Zeta<b/>x</brand>'
    b"<price>10</price><!--no--><since>2026-03-28T10:00:00Z</since></card>"
)


# What travels on a connection


def frames(data: bytes) -> None:
    """However a stream is cut, the frames are the same; and no more is held than the limit and a header."""
    try:
        whole = Frames(GREETING_FRAME).feed(data)
    except PalioError:
        return
    cut = Frames(GREETING_FRAME)
    size = 1 + len(data) % 7
    pieces = [piece for at in range(0, len(data), size) for piece in cut.feed(data[at : at + size])]
    assert pieces == whole
    assert len(cut) <= GREETING_FRAME + 4
    assert b"".join(map(frame, whole)) == data[: sum(len(one) + 4 for one in whole)]


def messages(data: bytes) -> None:
    """A message is read, or it is said that it is none; what was read is the same after another round."""
    refusal_of(data, UnreadableMessage("It is none."))
    try:
        message = decode(data)
    except PalioError:
        return
    again = encode(message)
    assert encode(decode(again)) == again
    if isinstance(message, Publish):  # what is read only once it is needed
        _touch(message.notifications)
    elif isinstance(message, Forward):
        _touch(tuple(envelope.notification for envelope in message.envelopes))


def conversations(data: bytes) -> None:
    """A stream at a broker's door: nobody is heard who has not greeted, and clients only as they may speak."""
    said: list[bytes] = []
    conversation: Conversation[None] = Conversation(Heartbeat(1.0, 0.0), decode, said.append)
    greeted = False
    with contextlib.suppress(PalioError):
        for payload in conversation.feed(data, 0.0):
            message = conversation.hear(payload)
            if type(message) is Greet:
                assert not greeted
                greeted = True
                welcome = Welcome(PROTOCOL, "siena")
                conversation.welcome(message, welcome, hears=FROM_CLIENTS, frame_limit=GREETING_FRAME)
            elif message is not None and type(message) not in (Bye, Refused):
                assert greeted
                assert type(message) in FROM_CLIENTS
    for payload in said:
        assert type(decode(payload)) in (Welcome, Pong)


def _touch(batch: tuple[Notification, ...]) -> None:
    for notification in batch:
        with contextlib.suppress(PalioError):
            _ = notification.attributes, as_event(notification)


def notifications(data: bytes) -> None:
    """Python's reading and the compiled core's agree on what is a notification."""
    try:
        attributes: object = Notification.decode(data).attributes
    except PalioError:
        attributes = None
    try:
        MatchIndex().match_encoded([data])
        core = True
    except PalioError:
        core = False
    assert core is (attributes is not None)


def forms(data: bytes) -> None:
    """A filter or an advertisement as brokers write it: what was read is the same after another round."""
    for kind in (Filter, Advertisement):
        try:
            form = kind.of_form(data)
        except PalioError:
            continue
        again = kind.of_form(form.form)
        assert again == form
        str(again)


# What people write


def filters(data: bytes) -> None:
    """A filter's text means the same as the text of its normal form."""
    filter = _read_twice(Filter.parse, data)
    if filter is not None and (example := filter.example()) is not None:
        assert filter.matches(example)
        filter.explain(example)


def topics(data: bytes) -> None:
    """A topic filter of MQTT: what was understood is a filter of ours."""
    _understood("mqtt", data)


def event_patterns(data: bytes) -> None:
    """An event pattern of EventBridge."""
    _understood("eventbridge", data)


def cesql_expressions(data: bytes) -> None:
    """An expression of CloudEvents SQL."""
    _understood("cesql", data)


def message_selectors(data: bytes) -> None:
    """A message selector of JMS."""
    _understood("jms", data)


def _understood(dialect: str, data: bytes) -> None:
    filter = _told(lambda: read_filter(data.decode("utf-8", "replace"), dialect))
    if filter is not None and (example := filter.example()) is not None:
        assert filter.matches(example)
        assert filter.explain(example).holds


def advertisements(data: bytes) -> None:
    _read_twice(Advertisement.parse, data)


def patterns(data: bytes) -> None:
    _read_twice(Pattern.parse, data)


def _read_twice(read: Callable[[str], _Read], data: bytes) -> _Read | None:
    text = data.decode("utf-8", "replace")
    try:
        meant = read(text)
        again = read(str(meant))
    except PalioError:
        return None
    assert again == meant
    return meant


def json(data: bytes) -> None:
    """JSON becomes a notification that can be encoded and read again."""
    for read in (Notification.from_json, Notification.from_cloudevent):
        try:
            notification = read(data)
            encoded = notification.encode()
        except PalioError:
            continue
        assert Notification.decode(encoded).attributes == notification.attributes


# What comes over HTTP. What is refused there must be tellable, too.


def events(data: bytes) -> None:
    """Lines of headers, an empty one, a body. A CloudEvent that was written is written so again."""
    head, _, body = data.partition(b"\n\n")
    lines = [line.partition(b":") for line in head.split(b"\n")]
    headers = [(name.decode("latin-1").strip(), value.decode("latin-1").strip()) for name, _, value in lines]
    message = Message.of(headers, body)
    for notification in _told(lambda: tuple(read_message(message, _READING, XML_FORMATS))) or ():
        for format in (BINARY, STRUCTURED) if as_event(notification) is not None else ():
            # What looked like a time in plain JSON is one from then on.
            written = _again(format, _again(format, notification)[1])[0]
            assert _again(format, next(_read(written)))[0] == written


def _again(format: Format, notification: Notification) -> tuple[Message, Notification]:
    """What is written, and what that is read as."""
    (message,) = format.write([Envelope("siena", 1, 0.0, 0, "siena", notification)])
    (read,) = _read(message)
    assert as_event(read) is not None
    return message, read


def _read(message: Message) -> Iterator[Notification]:
    return read_message(Message.of(message.headers, message.body), _READING)


def requests(data: bytes) -> None:
    """A whole request, as far as it is looked at before its body."""
    reading = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
    reading.receive_data(data)
    try:
        read = reading.next_event()
    except h11.RemoteProtocolError:
        return
    if not isinstance(read, h11.Request):
        return
    path, _, query = read.target.partition(b"?")
    asked = Request({"type": "http", "headers": list(read.headers), "path": path, "query_string": query})
    for changes in (False, True):
        _told(lambda changes=changes: _GUARD.require_known(asked.headers, changes=changes))
    _told(lambda: bearer(asked.headers))
    call = Call(cast("Any", None), cast("Any", None), asked)  # neither broker nor body is looked at
    _told(lambda: read_properties(call))
    wanted = _told(lambda: read_wanted(call, call.query.get("filter")))
    if wanted is not None and wanted.after is not None:
        assert read_position(write_position(wanted.after)) == wanted.after


def subscriptions(data: bytes) -> None:
    """A subscription as a resource, with filters in the dialects of the Subscriptions API."""
    definition = _told(lambda: read_definition(jsontext.read(data), "one"))
    if definition is not None and (filter := _told(lambda: filter_of(definition))) is not None:
        example = filter.example()
        assert example is None or filter.matches(example)


def sinks(data: bytes) -> None:
    """An address of a webhook: what is taken names a host and no secret."""
    url = _told(lambda: require_form(data.decode("utf-8", "replace")))
    if url is not None:
        assert url.host
        assert url.user is None
        assert url.password is None


def envelopes(data: bytes) -> None:
    """A request of SOAP: who calls, what is selected, until when; what is wrong is a fault that XML can be."""
    try:
        request = read_envelope(data)
        _USERNAMES.token_of(request.security)
        for one in request.operation.iter():
            if not isinstance(one.tag, str):
                continue
            dialect, text = one.get("Dialect", ""), "".join(one.itertext())
            for read in (topic_filter, content_filter):
                with contextlib.suppress(PalioError):
                    Filter.parse(read(text, dialect, one.nsmap))
            with contextlib.suppress(PalioError):
                assert read_term(text, 0.0) > 0.0
    except PalioError as problem:
        for version in SoapVersion:
            status, content = write_fault(version, problem, relates_to=data.decode("utf-8", "replace"))
            assert 400 <= status <= 500
            assert parse_document(content).getroot().tag == f"{{{version.namespace}}}Envelope"


# XML documents, and what is said about them


def documents(data: bytes) -> None:
    """A document is read or refused; what was read of it is in its one form, and travels."""
    try:
        read = _READER.read(data)
    except PalioError:
        return
    assert read.payload is data
    checked = Notification(read.attributes)
    assert Notification.of_values(read.attributes) == checked
    assert Notification.decode(checked.encode()).attributes == read.attributes


def _both_ways(path: XPath) -> None:
    """The short way to values finds what the long way does."""
    wanted = [(path, FamilyPath(path.text, many=True))]
    short, long = (PathFinding(wanted, short=short).values(_CARD_TREE) for short in (True, False))
    assert short == long


def xpaths(data: bytes) -> None:
    """A path is written in one way, costs little, finds what libxml2 finds, and is what its schema says."""
    text = data.decode("utf-8", "replace")
    path = _told(lambda: read_path(text, _CARD.prefixes))
    if path is None:
        return
    assert read_path(path.text, _CARD.prefixes) == path
    etree = etree_module()
    try:
        compiled = etree.XPath(path.text, namespaces=_CARD.prefixes, smart_strings=False)
    except etree.XPathSyntaxError:  # names of the fifth edition of XML, which the walk finds alone
        assert not text.isascii()
        Extraction([path]).found(_CARD_TREE)
        return
    _both_ways(path)
    expected, [found] = compiled(_CARD_TREE), Extraction([path]).found(_CARD_TREE).results
    if isinstance(found, float):
        assert repr(found) == repr(expected)
    elif isinstance(expected, list):  # lxml does not give the document itself
        assert [one for one in found if not hasattr(one, "getroot")] == expected
    else:
        assert found == expected
    with metered(Meter(_STEPS)):
        try:
            said = _CARD_TYPING.type(path)
        except TooHard:
            return
        except UnknownPath:
            assert not isinstance(found, list) or not found
            return
    assert said.many or not isinstance(found, list) or len(found) < 2


def selections(data: bytes) -> None:
    """A filter about documents becomes a plain one, whose text says the same."""
    text = data.decode("utf-8", "replace")
    made = _told(lambda: read_selection(text, {"card": _CARDS}))
    if made is not None and (again := _told(lambda: Filter.parse(made.filter.source or ""))) is not None:
        assert again == made.filter


def schemas(data: bytes) -> None:
    """What is a schema is known before anything compiles it, and nothing is fetched for it."""
    _told(lambda: read_sources((SchemaFile("one.xsd", data),)))


def tokens(data: bytes) -> None:
    """`Authorization`: only the one secret opens."""
    given = data.decode("latin-1")
    request = Request({"type": "http", "headers": [(b"authorization", data)]})
    shown = _told(lambda: bearer(request.headers))
    if shown is not None and _told(lambda: check_token(_TOKENS, shown, 0.0)) is not None:
        assert given.split(maxsplit=1)[1].strip() == f"palio_0123456789ab_{_SECRET}"


def _told(read: Callable[[], _Read]) -> _Read | None:
    try:
        return read()
    except PalioError as problem:
        answer: Any = problem_response(problem)
        assert 400 <= answer.status_code < 500
        return None


DECODERS: dict[str, Callable[[bytes], None]] = {
    one.__name__: one
    for one in (
        frames,
        messages,
        conversations,
        notifications,
        forms,
        filters,
        topics,
        event_patterns,
        cesql_expressions,
        message_selectors,
        advertisements,
        patterns,
        json,
        events,
        requests,
        envelopes,
        documents,
        xpaths,
        selections,
        schemas,
        subscriptions,
        sinks,
        tokens,
    )
}
