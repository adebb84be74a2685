"""Files of studies, changed by hand."""

import contextlib
import sqlite3

from nestbo.storage.rows import COLUMNS, checksum


@contextlib.contextmanager
def raw(path):
    """The database of a study, to do anything with; committed at the end."""
    connection = sqlite3.connect(path)
    try:
        with connection:
            yield connection
    finally:
        connection.close()


def sign(connection):
    """Give every row the checksum of what it says now, as someone would who knows how nestbo works."""
    for row in connection.execute(f"SELECT {COLUMNS} FROM trials").fetchall():
        connection.execute("UPDATE trials SET checksum = ? WHERE number = ?", (checksum(row), row[0]))
    for row in connection.execute("SELECT name, value FROM settings").fetchall():
        connection.execute("UPDATE settings SET checksum = ? WHERE name = ?", (checksum(row), row[0]))


def change(path, statement, *values):
    """Change a study by hand so that its checksums fit."""
    with raw(path) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(statement, values)
        sign(connection)
