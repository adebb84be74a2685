"""A study as one SQLite file: durable when ``tell`` returns, shared by processes of one machine, safe to kill."""

from nestbo.storage.file import is_store
from nestbo.storage.opening import missing, vacant
from nestbo.storage.rows import version
from nestbo.storage.store import Store, Times

__all__ = ["Store", "Times", "is_store", "missing", "vacant", "version"]
