"""What went wrong, told as a code, a sentence and a hint on standard error, and as an exit code."""

import os
import sys
from contextlib import suppress
from typing import Any

import click

from turnwal.cli import exits
from turnwal.cli.app import ClosedPipe
from turnwal.cli.screen import dump
from turnwal.cli.visible import visible
from turnwal.core.errors import TurnwalError

_DEBUG = "TURNWAL_DEBUG"


def failed(error: BaseException, *, as_json: bool) -> int:
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
    fields, code = _described(error)
    with suppress(OSError, ValueError):
        _write(dump({"error": fields}) if as_json else _told(fields))
        if fields["code"] == "unexpected" and os.environ.get(_DEBUG) == "1":
            _write(_trace(error))
    return code


def report(error: Exception, *, as_json: bool) -> int:
    """Tell an error that does not end the command, and return its exit code."""
    fields, code = _described(error)
    _write(dump({"error": fields}) if as_json else _told(fields))
    return code


def _described(error: BaseException) -> tuple[dict[str, Any], int]:
    if isinstance(error, TurnwalError):
        return dict(error.to_json()), exits.exit_code(error)
    if isinstance(error, click.UsageError):
        path = "turnwal" if error.ctx is None else error.ctx.command_path
        return _fields("usage", error.format_message(), f"`{path} --help` explains the arguments"), exits.USAGE
    if isinstance(error, click.ClickException):
        return _fields("usage", error.format_message(), ""), exits.USAGE
    if isinstance(error, OSError):
        subject = "" if error.filename is None else str(error.filename)
        fields = _fields("store_failed", error.strerror or str(error), "look at the path and its permissions")
        return fields | {"subject": subject}, exits.ERROR
    hint = f"this is a defect of turnwal: please report it; {_DEBUG}=1 shows where it happened"
    return _fields("unexpected", f"{type(error).__name__}: {error}", hint), exits.ERROR


def _fields(code: str, message: str, hint: str) -> dict[str, Any]:
    return {"code": code, "action": "", "subject": "", "message": message, "hint": hint, "retriable": False}


def _told(fields: dict[str, Any]) -> str:
    where = " ".join(part for part in (str(fields["action"]), str(fields["subject"])) if part)
    sentence = f"{where}: {fields['message']}" if where else str(fields["message"])
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
