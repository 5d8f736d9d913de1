"""The yardstick of publishing: content-based publish/subscribe for XML as its source describes it, in SQL.

Its tables, its three phases and its query are done as they are described, in the order of the text, with its
mistakes mended (below), by one function and one commit a publish. What the source does around that is left out,
in favour of the yardstick: there is no network, no SOAP, no schema is validated, and whoever is notified takes
the content from a variable.

- *Log*: a row with the bytes of the message.
- *Store*: all XPaths of the family, one by one by lxml; a row for the content and one for each value; earlier
  content with the same key is obsolete; then the query for who wants it, and a route for each.
- *Forward*: the pending routes are read, sent, and marked.

Mended: values are counted once however often a path finds them, a subscription without conditions is selected,
all nodes that a path finds have rows, and two publishes of one key at a time wait for each other. Indexes are
those that the query needs.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from lxml import etree

from palio.documents import Family

MAX_CONTENT: Final = 1_048_576
NOTIFY: Final = 3
_TABLES: Final = (
    "CREATE TABLE client (client_id INTEGER PRIMARY KEY, address TEXT NOT NULL)",
    "CREATE TABLE namespace (namespace_id INTEGER PRIMARY KEY, namespace TEXT NOT NULL UNIQUE)",
    "CREATE TABLE xpath (xpath_id INTEGER PRIMARY KEY, namespace_id INTEGER NOT NULL, statement TEXT NOT NULL,"
    " replacement INTEGER NOT NULL)",
    "CREATE TABLE advertisement (advertisement_id {key}, client_id INTEGER NOT NULL,"
    " namespace_id INTEGER NOT NULL)",
    "CREATE TABLE subscription (subscription_id INTEGER PRIMARY KEY, client_id INTEGER NOT NULL,"
    " namespace_id INTEGER NOT NULL, valid TEXT NOT NULL)",
    "CREATE TABLE subscription_xpath (subscription_id INTEGER NOT NULL, xpath_id INTEGER NOT NULL,"
    " valore TEXT NOT NULL, PRIMARY KEY (subscription_id, xpath_id, valore))",
    "CREATE TABLE content (content_id {key}, namespace_id INTEGER NOT NULL, content {bytes} NOT NULL,"
    " obsolete INTEGER NOT NULL)",
    "CREATE TABLE xpath_application (content_id INTEGER NOT NULL, xpath_id INTEGER NOT NULL,"
    " valore TEXT NOT NULL)",
    "CREATE TABLE publish (publish_id {key}, logging_id INTEGER NOT NULL, client_id INTEGER NOT NULL,"
    " namespace_id INTEGER NOT NULL, content_id INTEGER NOT NULL)",
    "CREATE TABLE logging (logging_id {key}, client_id INTEGER NOT NULL, at DOUBLE PRECISION NOT NULL,"
    " operation INTEGER NOT NULL, message {bytes} NOT NULL)",
    "CREATE TABLE route (route_id {key}, content_id INTEGER NOT NULL, client_id INTEGER NOT NULL,"
    " routed INTEGER NOT NULL)",
    "CREATE INDEX by_content ON xpath_application (content_id)",
    "CREATE INDEX by_value ON xpath_application (xpath_id, valore)",
    "CREATE INDEX routes ON route (content_id)",
    "CREATE INDEX conditions ON subscription_xpath (xpath_id, valore)",
    "CREATE INDEX interested ON subscription (namespace_id)",
)
# Listing 3.5 of the source, with what is counted once and with subscriptions without conditions.
MATCHING: Final = """
SELECT s.subscription_id, s.client_id
FROM subscription s
LEFT JOIN subscription_xpath w ON w.subscription_id = s.subscription_id
LEFT JOIN (SELECT DISTINCT xpath_id, valore FROM xpath_application WHERE content_id = ?) f
  ON f.xpath_id = w.xpath_id AND f.valore = w.valore
WHERE s.namespace_id = ? AND s.valid = 'S'
GROUP BY s.subscription_id, s.client_id
HAVING COUNT(w.xpath_id) = COUNT(f.xpath_id)
ORDER BY s.subscription_id
"""
_OBSOLETE: Final = """
UPDATE content SET obsolete = 1 WHERE obsolete = 0 AND content_id <> ? AND content_id IN (
  SELECT content_id FROM xpath_application WHERE {} GROUP BY content_id HAVING COUNT(*) = ?)
"""
Condition = tuple[str, str]  # an XPath, and the value that it has to have
Row = tuple[Any, ...]


class SqliteDatabase:
    """As our journal has it: a write-ahead log, and on disk when it is committed."""

    types: Final = {"key": "INTEGER PRIMARY KEY AUTOINCREMENT", "bytes": "BLOB"}

    def __init__(self, place: str, *, sync: str = "FULL") -> None:
        self._connection = sqlite3.connect(place, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute(f"PRAGMA synchronous={sync}")

    def all(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        return self._connection.execute(statement, values).fetchall()

    def add(self, statement: str, values: Sequence[object], key: str) -> int:
        return int(self._connection.execute(statement, values).lastrowid or 0)

    def many(self, statement: str, rows: Sequence[Row]) -> None:
        self._connection.executemany(statement, rows)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def only(self, key: str) -> None:
        """There is one writer anyway."""

    def close(self) -> None:
        self._connection.close()


class PostgresqlDatabase:
    """Connections of several threads may be under way at a time, and commits of theirs share a write."""

    types: Final = {"key": "BIGSERIAL PRIMARY KEY", "bytes": "BYTEA"}

    def __init__(self, url: str) -> None:
        import psycopg  # noqa: PLC0415 (where it is installed)

        self._connection = psycopg.connect(url, autocommit=True)
        self._cursor = self._connection.cursor()

    def all(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        self._cursor.execute(statement.replace("?", "%s"), values)  # type: ignore[arg-type]
        return self._cursor.fetchall() if self._cursor.description else []

    def add(self, statement: str, values: Sequence[object], key: str) -> int:
        return int(self.all(f"{statement} RETURNING {key}", values)[0][0])

    def many(self, statement: str, rows: Sequence[Row]) -> None:
        self._cursor.executemany(statement.replace("?", "%s"), rows)  # type: ignore[arg-type]

    def transaction(self) -> Any:
        return self._connection.transaction()

    def only(self, key: str) -> None:
        """No other publish of this key until this one is committed."""
        self.all("SELECT pg_advisory_xact_lock(hashtext(?))", (key,))

    def close(self) -> None:
        self._connection.close()


AnyDatabase = SqliteDatabase | PostgresqlDatabase


def create(database: AnyDatabase, family: Family, subscriptions: Sequence[Sequence[Condition]]) -> None:
    """The tables, one family, a publisher that has advertised it, and subscriptions of one client each."""
    for statement in _TABLES:
        database.all(statement.format(**database.types))
    with database.transaction():
        database.all("INSERT INTO client VALUES (0, 'urn:publisher')")
        database.all("INSERT INTO namespace VALUES (1, ?)", (family.namespace,))
        database.all("INSERT INTO advertisement (client_id, namespace_id) VALUES (0, 1)")
        written = _statements(family)
        rows = [(number, 1, one, int(one in family.key)) for number, one in enumerate(written, 1)]
        database.many("INSERT INTO xpath VALUES (?, ?, ?, ?)", rows)
        numbers = {one: number for number, one in enumerate(written, 1)}
        for number, conditions in enumerate(subscriptions, 1):
            database.all("INSERT INTO client VALUES (?, ?)", (number, f"urn:subscriber:{number}"))
            database.all("INSERT INTO subscription VALUES (?, ?, 1, 'S')", (number, number))
            found = [(number, numbers[expression], value) for expression, value in dict.fromkeys(conditions)]
            if found:
                database.many("INSERT INTO subscription_xpath VALUES (?, ?, ?)", found)


class SourceBroker:
    """Publishes on one connection. `deliver` is given what is sent: to whom, and the content."""

    def __init__(
        self, database: AnyDatabase, family: Family, deliver: Callable[[int, bytes], None] = lambda *_: None
    ) -> None:
        self._database = database
        self._deliver = deliver
        self._family = family
        self._paths = [
            (number, etree.XPath(one, namespaces=family.prefixes), one in family.key)
            for number, one in enumerate(_statements(family), 1)
        ]
        [(self._namespace,)] = database.all(
            "SELECT namespace_id FROM namespace WHERE namespace = ?", (family.namespace,)
        )

    def publish(self, content: bytes) -> list[int]:
        """The clients that were notified."""
        database = self._database
        if len(content) > MAX_CONTENT:
            raise ValueError(f"A content has at most {MAX_CONTENT:,} bytes.")
        with database.transaction():
            said = "INSERT INTO logging (client_id, at, operation, message) VALUES (?, ?, ?, ?)"
            log = database.add(said, (0, time.time(), NOTIFY, content), "logging_id")
            number = self._store(log, content)
            return self._forward(number)

    def _store(self, log: int, content: bytes) -> int:
        database = self._database
        advertised = "SELECT 1 FROM advertisement WHERE client_id = ? AND namespace_id = ?"
        if not database.all(advertised, (0, self._namespace)):
            raise ValueError("The publisher has not advertised this namespace.")
        root = etree.fromstring(content)
        found = [(path, text, is_key) for path, xpath, is_key in self._paths for text in texts(xpath(root))]
        key = [(path, text) for path, text, is_key in found if is_key]
        database.only(repr(key))
        added = "INSERT INTO content (namespace_id, content, obsolete) VALUES (?, ?, 0)"
        number = database.add(added, (self._namespace, content), "content_id")
        database.many(
            "INSERT INTO xpath_application VALUES (?, ?, ?)", [(number, path, text) for path, text, _ in found]
        )
        wanted = " OR ".join("(xpath_id = ? AND valore = ?)" for _ in key)
        if key:
            values = [one for pair in key for one in pair]
            database.all(_OBSOLETE.format(wanted), (number, *values, len(key)))
        published = "INSERT INTO publish (logging_id, client_id, namespace_id, content_id) VALUES (?, ?, ?, ?)"
        database.all(published, (log, 0, self._namespace, number))
        matches = database.all(MATCHING, (number, self._namespace))
        if matches:
            routes = [(number, client) for _, client in matches]
            database.many("INSERT INTO route (content_id, client_id, routed) VALUES (?, ?, 0)", routes)
        return number

    def _forward(self, number: int) -> list[int]:
        database = self._database
        pending = "SELECT route_id, client_id, content FROM route JOIN content USING (content_id) "
        routes = database.all(f"{pending} WHERE content_id = ? AND routed = 0", (number,))
        for _, client, content in routes:
            self._deliver(client, content)
        if routes:
            database.all("UPDATE route SET routed = 1 WHERE content_id = ?", (number,))
        return sorted(client for _, client, _ in routes)


def texts(result: Any) -> list[str]:
    """What an XPath finds, as texts."""
    return [_text(one) for one in result] if isinstance(result, list) else [str(result)]


def _text(node: Any) -> str:
    if isinstance(node, str):
        return str(node)
    return str(node.xpath("string()")) if len(node) else node.text or ""


def _statements(family: Family) -> list[str]:
    return list(dict.fromkeys([*family.key, *[path.expression for path in family.paths]]))
