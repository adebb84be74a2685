"""The tables of a store: whether a file has them and nothing else, and how those of an older schema become them."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from nestbo.errors import StoreError
from nestbo.history import Told
from nestbo.storage.rows import COLUMNS, UNREADABLE, Row, checksum, read_told, write_told

APPLICATION = 0x6E657374  # "nest", in the header of the file
SCHEMA = 2
_SETTINGS = "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum BLOB NOT NULL) WITHOUT ROWID"
_TRIALS = """CREATE TABLE trials (
    number INTEGER PRIMARY KEY CHECK (number >= 0),
    status TEXT NOT NULL CHECK (status IN ('reserved', 'asked', 'told', 'failed')),
    x BLOB,
    told TEXT NOT NULL,
    memory TEXT NOT NULL,
    owner TEXT,
    asked_at REAL,
    told_at REAL,
    version TEXT,
    revision INTEGER NOT NULL CHECK (revision >= 0),
    checksum BLOB NOT NULL
)"""
_REVISIONS = "CREATE INDEX revisions ON trials (revision)"
_STATES = "CREATE INDEX states ON trials (status, owner)"
_TABLES = (_SETTINGS, _TRIALS, _REVISIONS, _STATES)

# Those of schema 1, whose values were once declared as REAL.
_FORMER_SETTINGS = "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
_FORMER_TRIALS = """CREATE TABLE trials (
    number INTEGER PRIMARY KEY,
    status TEXT NOT NULL CHECK (status IN ('reserved', 'asked', 'told', 'failed')),
    x BLOB,
    value{}
    notes TEXT NOT NULL DEFAULT '{{}}',
    owner TEXT,
    asked REAL,
    told REAL
)"""
_FORMER = [
    {_FORMER_SETTINGS, _FORMER_TRIALS.format(declared)}
    for declared in (", -- a number without declared type: a REAL column would lose the sign of zero", " REAL,")
]
_FORMER_FACTS = ("noise", "constraints", "failed", "lost", "violation")  # keys of notes that were told


def make(connection: sqlite3.Connection, settings: dict[str, Any]) -> None:
    """Make the tables, within a transaction that the caller has begun."""
    for statement in _TABLES:
        connection.execute(statement)
    for name, value in settings.items():
        put_setting(connection, name, json.dumps(value))
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {SCHEMA}")


def put_setting(connection: sqlite3.Connection, name: str, text: str) -> None:
    """Write one setting with its checksum."""
    row = (name, text, checksum((name, text)))
    connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?, ?)", row)


def put_row(connection: sqlite3.Connection, row: Row) -> None:
    """Write one trial with its checksum."""
    marks = ", ".join("?" * (len(row) + 1))
    statement = f"INSERT OR REPLACE INTO trials ({COLUMNS}, checksum) VALUES ({marks})"
    connection.execute(statement, (*row, checksum(tuple(row))))


def check(connection: sqlite3.Connection, path: Any) -> int:
    """The schema of a store; 0 for an empty database. Refuse all that is not a store, or damaged, or a trap."""
    connection.execute("PRAGMA trusted_schema = OFF")
    application, found = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _MARKS)
    tables = connection.execute("SELECT sql FROM sqlite_master LIMIT 20").fetchall()
    if not tables:
        return 0
    if application != APPLICATION:
        raise StoreError(f"Wanted a nestbo store, got another program's database: {path}. Choose another path.")
    if found not in (1, SCHEMA):
        raise StoreError(
            f"The store {path} has schema version {found}, this nestbo reads {SCHEMA}. Use the nestbo that wrote it."
        )
    texts = {text for (text,) in tables}
    if texts != set(_TABLES) if found == SCHEMA else texts not in _FORMER:
        raise StoreError(f"The store {path} has tables, views or triggers that nestbo did not make. Restore a copy.")
    return found


_MARKS = ("application_id", "user_version")


def check_integrity(connection: sqlite3.Connection, path: Any) -> None:
    """Refuse a file whose pages or indices contradict each other; what rows say has its own checksums."""
    (said,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if said != "ok":
        raise StoreError(f"The store {path} is damaged: {' '.join(said.split())[:200]}. Restore a copy.")


def migrate(connection: sqlite3.Connection, path: Any) -> None:
    """Make a store of schema 1 one of schema 2, in one transaction, unless another process just did."""
    with connection:  # which commits or undoes, also when it is interrupted
        connection.execute("BEGIN IMMEDIATE")
        if check(connection, path) == 1:
            _rewrite(connection, path)


def _rewrite(connection: sqlite3.Connection, path: Any) -> None:
    settings = connection.execute("SELECT name, value FROM settings").fetchall()
    for name in ("settings", "trials"):
        connection.execute(f"ALTER TABLE {name} RENAME TO former_{name}")
    make(connection, {})
    for name, text in settings:
        put_setting(connection, name, text)
    rows = connection.execute(
        "SELECT number, status, x, value, notes, owner, asked, told FROM former_trials ORDER BY number"
    )
    for number, *rest in rows:
        try:
            put_row(connection, _converted(number, *rest))
        except UNREADABLE as error:
            raise StoreError(f"The store {path} is damaged in trial {number}: {error}. Restore a copy.") from error
    for name in ("settings", "trials"):
        connection.execute(f"DROP TABLE former_{name}")


def _converted(
    number: int, status: str, x: bytes | None, value: Any, text: str, owner: Any, asked: Any, told: Any
) -> Row:
    """A row of schema 1 as one of schema 2: of its notes, facts go to what was told, all others to memory."""
    notes = json.loads(text)
    if not isinstance(notes, dict):
        raise ValueError(f"its notes are {str(text)[:80]}")
    facts: dict[str, Any] = {} if value is None else {"values": [value]}
    facts |= {name: notes.pop(name) for name in _FORMER_FACTS if name in notes}
    said = read_told(json.dumps(facts)) if facts else Told()
    return Row(number, status, x, write_told(said), json.dumps(notes), owner, asked, told, None, number + 1)
