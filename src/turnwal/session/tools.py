"""Tools: what is declared of their effect, and how one is called.

The four hints are MCP's (`ToolAnnotations`). Undeclared means the pessimistic default: not read-only, destructive, not
idempotent, open world. Only what the application declares here softens any advice after a crash.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeGuard, TypeVar, overload

from turnwal.core.errors import InvalidEvent, Refused
from turnwal.core.line import compact
from turnwal.core.values import parse_arguments

F = TypeVar("F", bound=Callable[..., Any])
Tools = Mapping[str, Callable[..., Any]] | Callable[..., Any]
"""Tools by name, or one function; each is called with the arguments as keywords."""

Parts = list[dict[str, Any]]

_HINTS: Final = "__turnwal_hints__"
_DEFAULTS: Final = {"read_only": False, "destructive": True, "idempotent": False, "open_world": True}


class Hints(NamedTuple):
    """What a tool declares."""

    declared: Mapping[str, bool]
    keyed: str | None
    """Name of the parameter that takes the idempotency key."""

    @property
    def read_only(self) -> bool:
        """Whether the application declares that the tool changes nothing."""
        return self.declared.get("read_only", False)

    def recorded(self) -> dict[str, Any]:
        """The fields of a dispatch that keep the hints: all four values, and which of them were declared."""
        source = {name: "declared" if name in self.declared else "default" for name in _DEFAULTS}
        fields: dict[str, Any] = {"hints": _DEFAULTS | dict(self.declared), "hints_from": source}
        return fields | ({"keyed": True} if self.keyed else {})


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(
    *,
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    keyed: bool | str = False,
) -> Callable[[F], F]: ...
def tool(
    function: F | None = None,
    /,
    *,
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    keyed: bool | str = False,
) -> F | Callable[[F], F]:
    """Declare what is known of a tool's effect and return the function itself.

    Bare, it declares nothing. `keyed=True` says that the tool passes the call's idempotency key on to whoever does the
    work, so that the application may repeat the call: the key comes as the keyword `key`, or as the one named here.
    """
    given = {"read_only": read_only, "destructive": destructive, "idempotent": idempotent, "open_world": open_world}
    parameter = keyed if isinstance(keyed, str) else ("key" if keyed else None)
    hints = Hints({name: value for name, value in given.items() if value is not None}, parameter)

    def declare(function: F) -> F:
        try:
            setattr(function, _HINTS, hints)
        except AttributeError:
            message = f"{function!r:.80} takes no mark"
            hint = "decorate the function itself, or the method in its class"
            raise Refused(message, action="declare", subject="tool", hint=hint) from None
        return function

    return declare if function is None else declare(function)


def hints_of(function: Callable[..., Any]) -> Hints:
    """What a function declares; nothing for one that was never declared."""
    found = getattr(function, _HINTS, None)
    return found if isinstance(found, Hints) else Hints({}, None)


class Ready(NamedTuple):
    """A tool with arguments that fit it."""

    function: Callable[..., Any]
    arguments: dict[str, Any]
    hints: Hints


def prepare(tools: Tools, name: str | None, arguments: str | None, *, free_text: bool = False) -> Ready | str:
    """Find the tool and fit the arguments to it; returns what is wrong as text for the model when that fails.

    Nothing was run then. A call with free text gets it as the keyword `input`.
    """
    function = _find(tools, name)
    if function is None:
        known = ", ".join(sorted(map(str, tools))[:50]) if isinstance(tools, Mapping) else ""
        return f"There is no tool named {name!r}." + (f" The tools are: {known}." if known else "")
    parsed = {"input": arguments or ""} if free_text else parse_arguments(arguments)
    if parsed is None:
        return "The arguments are not a JSON object, so the tool was not called. Make the call again, complete."
    hints = hints_of(function)
    problem = _misfit(function, parsed, hints)
    return problem if problem is not None else Ready(function, parsed, hints)


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling the function gives something to await."""
    import inspect  # noqa: PLC0415 - costs more to import than all of this package's core

    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def is_generator(function: Callable[..., Any]) -> bool:
    """Whether calling the function gives a generator, asynchronous or not, and runs nothing of its body."""
    import inspect  # noqa: PLC0415 - as in is_async

    kinds = (inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    call = getattr(function, "__call__", None)  # noqa: B004
    return any(kind(function) or kind(call) for kind in kinds)


def parts_of(value: object) -> Parts:
    """The parts that keep what a tool returned.

    Text is one text part; None is no text; a list of parts is itself; any other JSON value is its compact text. Raises
    `InvalidEvent` or `OverLimit` for a value that JSON cannot hold.
    """
    if value is None:
        return [{"type": "text", "content": ""}]
    if isinstance(value, str):
        return [{"type": "text", "content": value}]
    if _are_parts(value):
        return [dict(part) for part in value]
    return [{"type": "text", "content": compact(value)}]


def _are_parts(value: object) -> TypeGuard[Parts]:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(part, dict) and isinstance(part.get("type"), str) for part in value)
    )


def given_parts(value: object) -> Parts:
    """The parts of what a user says: text, or a list of parts. Raises `InvalidEvent` for anything else."""
    if isinstance(value, str) or _are_parts(value):
        return parts_of(value)
    raise InvalidEvent(
        f"a user's message is text or a list of parts, not {value!r:.80}",
        action="append",
        subject="user_message",
        hint="pass text, or parts as in docs/format.md",
    )


def _find(tools: object, name: str | None) -> Callable[..., Any] | None:
    if isinstance(tools, Mapping):
        return tools.get(name) if name is not None else None
    if callable(tools):
        return tools
    message = f"tools is a {tools.__class__.__name__}, neither a mapping of functions nor a function"
    raise Refused(message, action="run", hint="pass {'name': function, …}")


def _misfit(function: Callable[..., Any], arguments: dict[str, Any], hints: Hints) -> str | None:
    import inspect  # noqa: PLC0415 - as in is_async

    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    if hints.keyed is not None and hints.keyed in arguments:
        return f"The argument {hints.keyed!r} is not one that the model may give, so the tool was not called."
    try:
        signature.bind(**arguments, **({hints.keyed: ""} if hints.keyed else {}))
    except TypeError as error:
        return f"The arguments do not fit the tool, so it was not called: {error}."
    return None
