"""The file of one study, or the same in memory: every method is one transaction.

The file holds the settings as text (no pickle: loading a stranger's file runs no code) and a row per trial. An index is
reserved before its point is computed; a reservation whose call has ended is taken up again by the next one, with the
same random numbers. Every row has a checksum, which is checked whenever the row is read. A write gives a row the next
revision, so that a reader asks for what has changed.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nestbo.errors import StoreError, TrialError
from nestbo.history import Told, Trial
from nestbo.storage.file import File, undo
from nestbo.storage.opening import explained
from nestbo.storage.owners import NOBODY, QUEUE, alive, owner
from nestbo.storage.rows import (
    COLUMNS,
    UNREADABLE,
    Row,
    checked,
    checksum,
    pack,
    tensor,
    trial_of,
    version,
    write_told,
)
from nestbo.storage.schema import make, put_row, put_setting

if TYPE_CHECKING:
    from torch import Tensor

    from nestbo.storage.rows import Array

_CONTENT = "SELECT 1 FROM sqlite_master LIMIT 1"
Times = tuple[float | None, float | None]  # when a trial was asked and told, in seconds since 1970


class Store:
    """What is kept of one study. Every method is one transaction."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        shape: tuple[int, ...] = (),
        point_of: Callable[[Array], Any] = tensor,
    ) -> None:
        self.file, self.shape, self.point_of = File(path), shape, point_of
        self.path = self.file.path

    def close(self) -> None:
        """Let go of the file."""
        self.file.close()

    def copy(self) -> Store:
        """The same as it is now, in memory."""
        other = Store(None, self.shape, self.point_of)
        self.file.copy(other.file.connection)
        return other

    def save(self, path: Path) -> None:
        """Write the same as it is now to a new file, which is complete or not there at all."""
        self.file.save(path)

    def create(self, settings: dict[str, Any]) -> None:
        """Write the settings of a new study, unless another process just did.

        The log comes first: where there is no room for it, the file stays one without a study.
        """
        self.file.start_log()
        with explained(self.path, "create"), self.file.lock, self.file.connection as connection:
            self.file.begin()
            if not connection.execute(_CONTENT).fetchall():
                make(connection, settings | {"nestbo": version()})
        self.file.write_log()

    @property
    def empty(self) -> bool:
        """Whether there is no study here yet."""
        return not self.file.found(_CONTENT)

    def settings(self) -> dict[str, Any]:
        """The settings as they were created, with the version of nestbo that made the file."""
        rows = self.file.found("SELECT name, value, checksum FROM settings")
        try:
            if any(found != checksum((name, text)) for name, text, found in rows):
                raise ValueError("the checksum of one is another")
            return {name: json.loads(text) for name, text, _ in rows}
        except UNREADABLE as error:
            raise StoreError(f"The settings in {self.path} are damaged: {error}. Restore a copy.") from error

    def set(self, name: str, value: Any) -> None:
        """Change one setting."""
        with explained(self.path, "write to"), self.file.lock, self.file.connection as connection:
            self.file.begin()
            put_setting(connection, name, json.dumps(value))

    def suggested_by(self) -> str | None:
        """The version of nestbo that wrote the last trial; None if that was before versions were written."""
        found = self.file.found("SELECT version FROM trials ORDER BY number DESC LIMIT 1")
        return found[0][0] if found else self.settings().get("nestbo")

    def reserve(self, count: int, call: str) -> list[int]:
        """Indices for points that a call is about to compute; those of calls that have ended first."""
        with explained(self.path, "write to"), self.file.lock, self.file.connection as connection:
            self.file.begin(durable=False)
            held = self._rows(connection, "WHERE status = 'reserved'")
            numbers = [row.number for row in held if not self._alive(row.owner)][:count]
            following = self._following(connection)
            numbers += range(following, following + count - len(numbers))
            self._write(connection, [Row(number, "reserved", owner=owner(call)) for number in numbers])
        return numbers

    def release(self, call: str) -> None:
        """Leave what a call still holds to others: other processes cannot see that the call has ended."""
        with explained(self.path, "write to"), self.file.lock, self.file.connection as connection:
            self.file.begin(durable=False)
            held = self._rows(connection, "WHERE status IN ('reserved', 'asked') AND owner = ?", owner(call))
            self._write(connection, [row._replace(owner=NOBODY) for row in held])

    def ask(self, trials: list[Trial], call: str, running: bool, revision: int) -> bool:
        """Record the points of indices that a call reserved, unless points came after a revision: then say False.

        ``running`` says that the call is about to evaluate them: undone by a power cut, they are asked again.
        """
        this = owner(call)
        with explained(self.path, "write to"), self.file.lock, self.file.connection as connection:
            self.file.begin(durable=not running)
            later = "SELECT 1 FROM trials WHERE revision > ? AND x NOTNULL LIMIT 1"
            if connection.execute(later, (revision,)).fetchone():
                return False
            asked = [self._asked(connection, trial, this) for trial in trials]
            self._write(connection, [row._replace(owner=this if running else None) for row in asked])
        return True

    def _asked(self, connection: sqlite3.Connection, trial: Trial, this: str) -> Row:
        held = self._row(connection, trial.index)
        if held is None or (held.status, held.owner) != ("reserved", this):
            raise StoreError(f"Trial {trial.index} of {self.path} was taken by another process. Ask again.")
        memory = json.dumps(trial.memory.json)
        return held._replace(status="asked", x=pack(trial.x), memory=memory, asked_at=time.time())

    def take_orphan(self, call: str) -> int | None:
        """The first trial that a call was to evaluate and left behind, now this call's; None if there is none."""
        with explained(self.path, "write to"), self.file.lock, self.file.connection as connection:
            self.file.begin(durable=False)
            rows = self._rows(connection, "WHERE status = 'asked' AND owner NOTNULL")
            orphan = next((row for row in rows if not self._alive(row.owner)), None)
            if orphan is None:
                return None
            self._write(connection, [orphan._replace(owner=owner(call), asked_at=orphan.asked_at or time.time())])
        return orphan.number

    def enqueue(self, x: Tensor, told: Told) -> int:
        """Record a point to be asked before others; its index."""
        with explained(self.path, "write to"), self.file.lock, self.file.connection as connection:
            self.file.begin()
            number = self._following(connection)
            self._write(connection, [Row(number, "asked", pack(x), write_told(told), owner=QUEUE)])
        return number

    def take_queued(self, count: int) -> list[int]:
        """The first points of the queue, from now on asked by hand."""
        with explained(self.path, "write to"), self.file.lock, self.file.connection as connection:
            undo(connection)
            if not self._rows(connection, "WHERE status = 'asked' AND owner = ?", QUEUE):
                return []  # as a rule: nothing needs to be written
            self.file.begin()
            rows = self._rows(connection, "WHERE status = 'asked' AND owner = ?", QUEUE)[:count]
            self._write(connection, [row._replace(owner=None, asked_at=time.time()) for row in rows])
        return [row.number for row in rows]

    def note(self, trial: Trial) -> None:
        """Record what is known of a trial that waits for a value."""
        with explained(self.path, "write to"), self.file.lock, self.file.connection as connection:
            self.file.begin(durable=False)
            row = self._row(connection, trial.index)
            if row is not None and row.status == "asked":
                self._write(connection, [row._replace(told=write_told(trial.told))])

    def tell(self, trial: Trial) -> None:
        """Record the outcome of an asked trial; refuse to overwrite one."""
        with explained(self.path, "write to"), self.file.lock, self.file.connection as connection:
            self.file.begin()
            row = self._row(connection, trial.index)
            if row is None or row.status != "asked":
                raise TrialError(f"Trial {trial.index} was told already. Use add(x, value) for another observation.")
            done = row._replace(status=trial.status, told=write_told(trial.told), told_at=time.time())
            self._write(connection, [done])
        self.file.write_log_at_times()

    def revise(self, trial: Trial, before: Told) -> None:
        """Replace what was told of a trial, unless it has changed meanwhile; nobody is to evaluate it any more."""
        with explained(self.path, "write to"), self.file.lock, self.file.connection as connection:
            self.file.begin()
            row = self._row(connection, trial.index)
            if row is None or self._trial(row).told != before:
                raise TrialError(f"Trial {trial.index} was changed by another process. Look at it and try again.")
            told = write_told(trial.told)
            self._write(connection, [row._replace(status=trial.status, told=told, owner=None)])
        self.file.write_log_at_times()

    def add(self, x: Tensor, told: Told) -> int:
        """Record an observation made elsewhere; its index."""
        now = time.time()
        with explained(self.path, "write to"), self.file.lock, self.file.connection as connection:
            self.file.begin()
            number = self._following(connection)
            row = Row(number, "told", pack(x), write_told(told), asked_at=now, told_at=now)
            self._write(connection, [row])
        self.file.write_log_at_times()
        return number

    def trials(self, since: int = -1) -> tuple[list[Trial], dict[int, Times], int]:
        """What was written after a revision: trials that have a point, times of all, and the revision they are of."""
        how = "INDEXED BY revisions" if since >= 0 else "NOT INDEXED"
        with explained(self.path, "read"), self.file.lock:
            undo(self.file.connection)
            rows = self._rows(self.file.connection, f"{how} WHERE revision > ?", since)
        trials = [self._trial(row) for row in rows if row.x is not None]
        times = {row.number: (row.asked_at, row.told_at) for row in rows}
        return trials, times, max((row.revision for row in rows), default=since)

    def _trial(self, row: Row) -> Trial:
        try:
            return trial_of(row, self.shape, self.point_of)
        except UNREADABLE as error:
            raise self._damaged(row.number, error) from error

    def _alive(self, who: str | None) -> bool:
        return alive(who, self.file.present)

    def _row(self, connection: sqlite3.Connection, number: int) -> Row | None:
        return next(iter(self._rows(connection, "WHERE number = ?", number)), None)

    def _rows(self, connection: sqlite3.Connection, where: str, *values: Any) -> list[Row]:
        """Rows in the order of their numbers, each as its checksum wants it."""
        found = connection.execute(f"SELECT {COLUMNS}, checksum FROM trials {where} ORDER BY number", values)
        rows = []
        for row in found.fetchall():
            try:
                rows.append(checked(*row))
            except UNREADABLE as error:
                raise self._damaged(row[0], error) from error
        return rows

    def _damaged(self, number: int, error: Exception) -> StoreError:
        return StoreError(f"The store {self.path} is damaged in trial {number}: {error}. Restore a copy.")

    def _write(self, connection: sqlite3.Connection, rows: list[Row]) -> None:
        """Write rows as the next revision."""
        revision = self._after(connection, "revision")
        for row in rows:
            put_row(connection, row._replace(version=version(), revision=revision))

    def _following(self, connection: sqlite3.Connection) -> int:
        """The first index that was never used."""
        return self._after(connection, "number")

    def _after(self, connection: sqlite3.Connection, column: str) -> int:
        """One more than the largest of a column, from 0 on."""
        found = connection.execute(f"SELECT coalesce(max({column}), -1) + 1 FROM trials").fetchone()[0]
        if not isinstance(found, int):  # beyond what SQLite counts
            raise StoreError(f"The store {self.path} is damaged: its last {column} is {found:.0f}. Restore a copy.")
        return found
