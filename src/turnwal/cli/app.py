"""The group of all verbs. A verb's module is imported when the verb is used, so starting costs what click costs."""

import os
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from importlib import import_module
from typing import Any, Final

import click

from turnwal import __version__

VERBS: Final[Mapping[str, tuple[str, str]]] = {
    "demo": ("turnwal.cli.demo", "demo"),
    "ls": ("turnwal.cli.ls", "ls"),
    "show": ("turnwal.cli.show", "show"),
    "plan": ("turnwal.cli.plan", "plan"),
    "recover": ("turnwal.cli.recover", "recover"),
    "settle": ("turnwal.cli.settle", "settle"),
    "approve": ("turnwal.cli.approve", "approve"),
    "verify": ("turnwal.cli.verify", "verify"),
    "head": ("turnwal.cli.head", "head"),
    "fork": ("turnwal.cli.fork", "fork"),
    "export": ("turnwal.cli.export", "export"),
    "check": ("turnwal.cli.checking", "check"),
    "import": ("turnwal.cli.importing", "importing"),
    "doctor": ("turnwal.cli.doctor", "doctor"),
    "repair": ("turnwal.cli.repair", "repair"),
    "copy": ("turnwal.cli.copy", "copy"),
    "migrate": ("turnwal.cli.migrate", "migrate"),
}
"""Verb to the module that holds it and the name of the command there, in the order of the help."""


class Verbs(click.Group):
    """A group whose commands are imported one at a time, and whose failures end in an exit code, never a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs, in the order of the help."""
        del ctx
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a verb; None for a word that is none."""
        del ctx
        if cmd_name not in VERBS:
            return None
        module, name = VERBS[cmd_name]
        command = getattr(import_module(module), name)
        if not isinstance(command, click.Command):
            raise TypeError(f"{module}.{name} is no command")
        return command

    def main(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002 - click's own signature
        **extra: Any,
    ) -> int:
        """Run, turn what went wrong into a message and an exit code, and exit with it."""
        arguments = list(sys.argv[1:] if args is None else args)
        _accept_any_text()
        try:
            code = super().main(arguments, prog_name, complete_var, standalone_mode=False, **extra)
            sys.stdout.flush()
        except BaseException as error:  # noqa: BLE001 - the last door: whatever comes becomes an exit code
            from turnwal.cli.failing import failed

            verb = next((word for word in arguments if not word.startswith("-")), "")
            code = failed(error, as_json=wants_json(arguments), verb=verb)
        code = code if isinstance(code, int) else 0
        if standalone_mode:
            sys.exit(code)
        return code

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb, with a closed pipe as an error of its own: click would end the process with another code."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ClosedPipe from error


class ClosedPipe(Exception):
    """Whoever read the output went away."""


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether errors are to be JSON too, also where the arguments cannot be parsed."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return "--json" in arguments[:end]


def _accept_any_text() -> None:
    """Let a terminal that cannot show a character get an escape for it instead of a traceback."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _settings() -> MutableMapping[str, Any]:
    width = os.environ.get("COLUMNS", "")
    return {"help_option_names": ["-h", "--help"], "max_content_width": int(width) if width.isdecimal() else 100}


@click.group(cls=Verbs, context_settings=_settings(), no_args_is_help=True)
@click.version_option(__version__, message="turnwal %(version)s")
def app() -> None:
    """Look at the logs of agent turns, and close what a crash left open.

    SESSION is the id of a session in a store, or the path of a plain .jsonl file. The store is --store, else
    $TURNWAL_STORE, else ./.turnwal.

    Exit codes: 0 nothing to do or done, 1 error, 2 usage, 3 interrupted work found, 4 damage found, 5 held by a live
    owner.
    """
