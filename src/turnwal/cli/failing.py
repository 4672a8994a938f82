"""What went wrong, told as a code, a sentence and a hint on standard error, and as an exit code."""

import errno
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import click

from turnwal.cli import exits
from turnwal.cli.app import ClosedPipe, app
from turnwal.cli.screen import dump
from turnwal.cli.visible import visible
from turnwal.core.errors import SessionHeld, TurnwalError

_DEBUG = "TURNWAL_DEBUG"
_NO_FILE = ("file_not_found", "look at the spelling of the path, and whether its directory is there")
_SYSTEM: Final[Mapping[int, tuple[str, str]]] = {
    errno.EEXIST: ("file_exists", "nothing is written over: name another file, or move that one away"),
    errno.ENOENT: _NO_FILE,
    errno.ENOTDIR: _NO_FILE,
    errno.EISDIR: ("store_failed", "that is a directory: name a file"),
}
"""Codes and hints for what the system says of a file that the command line itself opens."""


def failed(error: BaseException, *, as_json: bool, verb: str = "") -> int:
    """Tell an error and return its exit code. Never raises, and tells nobody where nobody reads."""
    if isinstance(error, ClosedPipe | BrokenPipeError):
        _leave_pipe()
        return exits.CLOSED_PIPE
    if isinstance(error, click.Abort | KeyboardInterrupt):
        return exits.CTRL_C
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else exits.ERROR
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        with suppress(OSError, ValueError):
            _write(error.format_message())
        return exits.USAGE
    fields, code = _described(error, verb)
    with suppress(OSError, ValueError):
        _write(dump({"error": fields}) if as_json else _told(fields))
        if fields["code"] == "unexpected" and os.environ.get(_DEBUG) == "1":
            _write(_trace(error))
    return code


def report(error: Exception, *, as_json: bool, session: str = "") -> int:
    """Tell an error that does not end the command, and return its exit code.

    A person is told of which session it is, also where the error speaks of something else, as of the whole store.
    """
    fields, code = _described(error)
    _write(dump({"error": fields}) if as_json else _told(fields, "" if fields["subject"] == session else session))
    return code


def _described(error: BaseException, verb: str = "") -> tuple[dict[str, Any], int]:
    """The fields of an error and its exit code; the verb is that of the current context where none is given."""
    if isinstance(error, SessionHeld):
        return dict(error.to_json()) | {"hint": _hint_to_wait(verb)}, exits.exit_code(error)
    if isinstance(error, TurnwalError):
        return dict(error.to_json()), exits.exit_code(error)
    if isinstance(error, click.UsageError):
        path = "turnwal" if error.ctx is None else error.ctx.command_path
        return _fields("usage", error.format_message(), f"`{path} --help` explains the arguments"), exits.USAGE
    if isinstance(error, click.ClickException):
        return _fields("usage", error.format_message(), ""), exits.USAGE
    if isinstance(error, OSError):
        return _of_system(error), exits.ERROR
    hint = f"this is a defect of turnwal: please report it; {_DEBUG}=1 shows where it happened"
    return _fields("unexpected", f"{type(error).__name__}: {error}", hint), exits.ERROR


def _of_system(error: OSError) -> dict[str, Any]:
    """What the system refused outside a store: a file to export to or to import from, or standard output."""
    from turnwal.store.disk import FULL

    code, hint = _SYSTEM.get(error.errno or 0, ("store_failed", "look at the path and its permissions"))
    if error.errno in FULL:
        code, hint = "store_full", "make room and try again"
    subject = "" if error.filename is None else str(error.filename)
    told = _fields(code, error.strerror or str(error), hint)
    return told | {"subject": subject, "retriable": code == "store_full"}


def _hint_to_wait(verb: str) -> str:
    """What to do about a live owner, with the option of the verb that has one."""
    context = click.get_current_context(silent=True)
    name = verb or (context.info_name if context is not None else None) or ""
    command = app.get_command(click.Context(app), name)
    waits = command is not None and any(parameter.name == "wait" for parameter in command.params)
    return f"wait for it to end{', or say --wait S' if waits else ''}; reading needs no ownership"


def _fields(code: str, message: str, hint: str) -> dict[str, Any]:
    return {"code": code, "action": "", "subject": "", "message": message, "hint": hint, "retriable": False}


def _told(fields: dict[str, Any], session: str = "") -> str:
    where = " ".join(part for part in (str(fields["action"]), str(fields["subject"])) if part)
    sentence = ": ".join(part for part in (session, where, str(fields["message"])) if part)
    lines = [f"error {fields['code']}: {visible(sentence)}"]
    if fields["hint"]:
        lines.append(f"hint: {visible(str(fields['hint']))}")
    return "\n".join(lines)


def _trace(error: BaseException) -> str:
    from traceback import format_exception

    return "\n".join(visible(line) for text in format_exception(error) for line in text.splitlines())


def _write(text: str) -> None:
    sys.stdout.flush()
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def _leave_pipe() -> None:
    """Point standard output at nothing, so that what is still buffered is not complained about at exit."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
