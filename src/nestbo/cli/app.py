"""The command itself: a mistake becomes one sentence on stderr and an exit code, stdout carries results only."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import TYPE_CHECKING, Annotated, Any, TextIO, cast

import typer
from typer.core import TyperGroup

from nestbo.errors import ArgumentError, NestboError
from nestbo.files import written
from nestbo.text import dumps, printable

if TYPE_CHECKING:
    from nestbo.study import Study
    from nestbo.study.light import Light

_UsageError = cast(type[typer.BadParameter], typer.BadParameter.__bases__[0])  # typer does not name it


class Commands(TyperGroup):
    """All subcommands; whatever one raises ends here."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _plain_flags(super().get_params(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _plain_flags(command.get_params(ctx))
        return command

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except (Exception, KeyboardInterrupt) as error:
            if ctx.params.get("traceback"):
                raise
            say(_sentence(error))
            raise typer.Exit(_code(error)) from error


def _plain_flags(options: list[Any]) -> list[Any]:
    """The same options; the help shows no type beside a flag, which takes no value."""
    for option in options:
        if getattr(option, "is_flag", False):
            option.metavar = ""
    return options


def _code(error: BaseException) -> int:
    if isinstance(error, KeyboardInterrupt):
        return 130
    return 2 if isinstance(error, ArgumentError | _UsageError) else 1


def _sentence(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "Interrupted; everything told is kept."
    if isinstance(error, _UsageError):
        said, command = error.format_message(), error.ctx.command_path if error.ctx else "nestbo"
        return f"{said}{'' if said.endswith(('.', '?')) else '.'} {command} --help says what it takes."
    if isinstance(error, NestboError | OSError):
        return str(error)
    return f"{type(error).__name__}: {error}. nestbo --traceback … shows where."


app = typer.Typer(cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="rich")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nestbo {metadata.version('nestbo')}")
        raise typer.Exit


@app.callback(epilog="Exit codes: 0 done, 1 the study or the objective failed, 2 wrong arguments, 130 interrupted.")
def nestbo(
    traceback: Annotated[bool, typer.Option("--traceback", help="Show where an error came from.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Minimise or maximise expensive functions of directions, matrices, proportions and numbers; a study is one file.

    If the computer evaluates the function, use run and resume. If you evaluate an experiment by hand, use new, then ask
    and tell. Results go to stdout, progress and messages to stderr.
    """


def say(text: str) -> None:
    """A message, on stderr; what a terminal would obey is shown instead."""
    typer.echo(printable(text), err=True)


def put(value: Any) -> None:
    """A result as one line of JSON, on stdout; floats survive to the last bit."""
    sys.stdout.write(dumps(value) + "\n")


def opened(path: str, constraints: Callable[[Any], Any] | None = None) -> Study:
    """The study in a file."""
    _check_there(path)
    from nestbo.study import Study

    return Study.load(path, constraints=constraints)


def read(path: str) -> Study | Light:
    """The study in a file, to show it or to tell a value, without its space where that is not needed."""
    _check_there(path)
    from nestbo.study.light import Light

    found = Light.load(path)
    return opened(path) if found is None else found


def _check_there(path: str) -> None:
    if not os.path.exists(path):
        raise ArgumentError(f"There is no study at {path}. Check the path, or begin one with nestbo new or nestbo run.")


@contextlib.contextmanager
def output_text(target: str) -> Iterator[TextIO]:
    """Where a text goes: a file, complete or not at all, or stdout for a dash."""
    if target == "-":
        yield sys.stdout
        return
    with written(target) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="")
        yield text
        text.flush()
        text.detach()


Store = Annotated[str, typer.Argument(metavar="STORE", help="The file of the study.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a script to read.")]
