"""One session of another tool, by the path and the name that a person gives."""

from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from turnwal.formats.format import Found

pick_option: Final = click.option(
    "--pick", metavar="NAME", help="Which session of a PATH that holds several: what doctor prints behind #."
)
_NAMED_MAX: Final = 10


def one_of(path: str, pick: str | None, *, action: str) -> "Found":
    """The one session of another tool at a path, or the one of that name.

    Raises `SessionNotFound` where there is none, `Refused` where there are several and none was picked.
    """
    from turnwal.core.errors import Refused, SessionNotFound

    found = sessions_at(path, action=action)
    if pick is not None:
        picked = [each for each in found if each.session == pick]
        if not picked:
            raise SessionNotFound(
                f"no session there is called {pick!r:.200}",
                action=action,
                subject=path,
                hint=f"there are {_names(found)}",
            )
        found = picked
    if len(found) > 1:
        raise Refused(
            f"there are {len(found):,} sessions", action=action, subject=path, hint=f"--pick one of {_names(found)}"
        )
    return found[0]


def sessions_at(path: str, *, action: str) -> "list[Found]":
    """The sessions of other tools at a path.

    Raises `SessionNotFound` where there is none, with the reason, and `SessionHeld` where their tool holds them.
    """
    from turnwal.core.errors import SessionHeld, SessionNotFound
    from turnwal.formats.finding import Unread, find

    found: list[Found] = []
    problem = ""
    for each in find([path]):
        if isinstance(each, Unread) and each.verdict == "busy":
            raise SessionHeld(
                each.problem, holder="its tool", action=action, subject=each.where, hint="end the tool, then try again"
            )
        if isinstance(each, Unread):
            problem = problem or f"{each.where}: {each.problem}"
        else:
            found.append(each)
    if not found:
        raise SessionNotFound(
            problem or "there is no session",
            action=action,
            subject=path,
            hint="the formats that are known are in docs/doctor.md",
        )
    return found


def _names(found: "list[Found]") -> str:
    names = [each.where if each.session is None else each.session for each in found]
    more = f" and {len(names) - _NAMED_MAX:,} more" if len(names) > _NAMED_MAX else ""
    return ", ".join(names[:_NAMED_MAX]) + more
