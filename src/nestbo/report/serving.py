"""The page of a study that is still running, served to this machine alone."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.client import HTTP_PORT
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from nestbo.errors import ArgumentError, NestboError
from nestbo.manifolds.base import check_size

_ADDRESS = "127.0.0.1"
_REST = 3.0  # times as long as drawing a page took, no other is drawn: the study needs the machine
_PATIENCE = 10.0  # seconds for a browser to say what it wants


class Live:
    """A page that is drawn again after something has happened, but not all the time.

    ``state`` says cheaply what there is, ``draw`` makes a page of it, which is told the state.
    """

    def __init__(self, state: Callable[[], str], draw: Callable[[str], str]) -> None:
        self._state, self._draw = state, draw
        self._lock = threading.Lock()
        self._drawn: tuple[str, str] | None = None
        self._rest_until = 0.0

    def _current(self) -> tuple[str, str]:
        """The state and the page of it; of requests that come together, the first one draws."""
        with self._lock:
            state, start = self._state(), time.monotonic()
            if self._drawn is None or (state != self._drawn[0] and start >= self._rest_until):
                self._drawn = state, self._draw(state)
                now = time.monotonic()
                self._rest_until = now + _REST * (now - start)
            return self._drawn

    def page(self) -> str:
        """The page."""
        return self._current()[1]

    def state(self) -> str:
        """Of which state the page is; it changes when there is a new one."""
        return self._current()[0]


Room = Callable[[str], Live | None]


def _no_room(name: str) -> Live | None:
    """What one page alone has behind it."""
    return None


class Watch:
    """A server of one page, on the local address of this machine, which no other machine can reach.

    ``state`` returns the current state as a text, and ``draw`` makes the page of a state. Port 0 takes any free port.
    If there are several pages, ``room`` returns the page of a name. Requests that name another host are refused, so
    that no web site can read the page through the browser.
    """

    def __init__(
        self, state: Callable[[], str], draw: Callable[[str], str], *, port: int = 0, room: Room = _no_room
    ) -> None:
        port = check_size("The port", port, least=0)
        if port > 65535:
            raise ArgumentError(f"Wanted a port from 0 to 65535, got {port}. Port 0 takes any free one.")
        handler = type("Handler", (_Handler,), {"live": Live(state, draw), "room": staticmethod(room)})
        try:
            self._server = ThreadingHTTPServer((_ADDRESS, port), handler)
        except OSError as error:
            raise NestboError(_refusal(error, port)) from error
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{_ADDRESS}:{self._server.server_port}/"

    def run(self) -> None:
        """Serve until ``stop`` is called or Ctrl-C pressed."""
        try:
            self._server.serve_forever(poll_interval=0.2)
        finally:
            self._server.server_close()

    def stop(self) -> None:
        """End ``run``, which goes on in another thread."""
        self._server.shutdown()


def _refusal(error: OSError, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} is in use by another program. Choose another one with --port, or any free one with 0."
    return f"Cannot serve on port {port}: {error.strerror}. Choose one above 1023 with --port."


def hosts(port: int) -> set[str]:
    """What a client on this machine calls the server; the port of HTTP may be left out, and browsers do."""
    names = (_ADDRESS, "localhost")
    return {f"{name}:{port}" for name in names} | (set(names) if port == HTTP_PORT else set())


class _Handler(BaseHTTPRequestHandler):
    """Answers GET / and GET /state, the same below the name of a study, and nothing else."""

    live: Live
    room: Room
    timeout = _PATIENCE
    server_version, sys_version = "nestbo", ""

    def do_GET(self) -> None:
        name, _, leaf = self.path.partition("?")[0].removeprefix("/").rpartition("/")
        live = self.room(unquote(name)) if name else self.live
        if str(self.headers.get("Host")).lower() not in hosts(self.connection.getsockname()[1]):
            self._answer(HTTPStatus.MISDIRECTED_REQUEST, "text/plain", "This server answers to its own address only.\n")
        elif live is None or leaf not in ("", "state"):
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", "There is no such page. Begin at /.\n")
        else:
            self._give(*(("text/plain", live.state) if leaf else ("text/html", live.page)))

    do_HEAD = do_GET  # noqa: N815

    def _give(self, kind: str, content: Callable[[], str]) -> None:
        """What was asked for, or why it cannot be had now; the next request may fare better."""
        try:
            text, status = content(), HTTPStatus.OK
        except Exception as error:
            kind, text, status = "text/plain", f"{type(error).__name__}: {error}\n", HTTPStatus.INTERNAL_SERVER_ERROR
        self._answer(status, kind, text)

    def _answer(self, status: HTTPStatus, kind: str, text: str) -> None:
        body = text.encode("utf-8", "replace")
        self.send_response(status)
        headers = {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def handle(self) -> None:
        try:
            super().handle()
        except (ConnectionError, TimeoutError):
            self.close_connection = True  # the browser has gone

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Silence: the terminal belongs to the study."""
