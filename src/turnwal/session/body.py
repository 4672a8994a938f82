"""Running a tool's body and keeping apart what can come of it."""

import contextvars
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from turnwal.core.errors import CallerError, OutcomeUnknown, TurnwalError
from turnwal.session.tools import Parts, Ready, is_async, is_generator, parts_of

if TYPE_CHECKING:
    from turnwal.session.handle import Handle


_COLLECTIONS: Final = (list, tuple, set, frozenset)
_PLAIN: Final = (str, bytes, int, float, dict, *_COLLECTIONS, type(None))


class Outcome(NamedTuple):
    """What a body came to: a value, an error, or an answer that was lost."""

    value: Any = None
    error: Exception | None = None
    unknown: Exception | None = None


def execute(ready: Ready, call: "Handle") -> Outcome:
    """Call the tool, as a body of the call. Exceptions are outcomes; an interrupt is not one and passes through.

    What has still to be driven, like a coroutine that nobody awaits or a `map` that nobody takes from, is no value, nor
    is a collection of such: a tool that returns it has an error where its body provably did not run, else an unknown
    outcome.
    """
    return _driven(ready, _call(ready, call))


async def execute_async(ready: Ready, call: "Handle") -> Outcome:
    """As `execute`, for tools of both kinds; a synchronous one runs in a thread. A cancellation passes through."""
    import asyncio  # noqa: PLC0415 - a synchronous program never pays for it
    import inspect  # noqa: PLC0415 - as in tools.is_async

    if is_async(ready.function):
        outcome = _call(ready, call)
    else:
        context = contextvars.copy_context()
        outcome = await asyncio.get_running_loop().run_in_executor(None, context.run, _call, ready, call)
    if inspect.isawaitable(outcome.value):
        try:
            with call.running():
                outcome = Outcome(value=await outcome.value)
        except OutcomeUnknown as lost:
            outcome = Outcome(unknown=lost)
        except Exception as error:  # noqa: BLE001 - whatever a tool raises is its result
            outcome = Outcome(error=error)
    return _driven(ready, outcome)


def _call(ready: Ready, call: "Handle") -> Outcome:
    # marked where it runs: a thread goes on although nobody waits for it any more
    try:
        with call.running():
            return Outcome(value=call.body(ready)(**_arguments(ready, call.key)))
    except OutcomeUnknown as lost:
        return Outcome(unknown=lost)
    except Exception as error:  # noqa: BLE001 - whatever a tool raises is its result
        return Outcome(error=error)


def _driven(ready: Ready, outcome: Outcome) -> Outcome:
    """The outcome, unless its value stands for work that was not done."""
    import inspect  # noqa: PLC0415 - as in tools.is_async

    value = outcome.value
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, _COLLECTIONS) else ()
    undriven = [each for each in (value, *inside) if _is_undriven(each)]
    if not undriven:
        return outcome
    for each in undriven:
        with suppress(Exception):
            if inspect.iscoroutine(each) or inspect.isgenerator(each):
                each.close()
    if is_generator(ready.function):
        return Outcome(error=TypeError("the tool is a generator function, so calling it did not run its body"))
    what = type(undriven[0]).__name__
    why = f"the tool returned an unfinished {what}, which nothing drives; what it did before that may have happened"
    return Outcome(unknown=OutcomeUnknown(why))


def _is_undriven(value: object) -> bool:
    """Whether a value is one whose work is done only when somebody awaits it or takes from it."""
    if isinstance(value, _PLAIN):
        return False
    import inspect  # noqa: PLC0415 - as in tools.is_async

    return inspect.isawaitable(value) or isinstance(value, (Iterator, AsyncIterator))


class Told(NamedTuple):
    """An outcome as a result keeps it."""

    parts: Parts
    is_error: bool
    metadata: dict[str, Any] | None = None


def tell(outcome: Outcome) -> Told:
    """What is recorded of a body that returned or raised; what cannot be kept is said to be so."""
    if outcome.error is not None:
        return Told(parts_of(said(outcome.error)), is_error=True)
    try:
        return Told(parts_of(outcome.value), is_error=False)
    except CallerError as problem:
        return not_kept(outcome, problem)


def not_kept(outcome: Outcome, problem: Exception) -> Told:
    """What is recorded instead of what the log cannot hold: that the tool ran, and why there is no more."""
    # what an error that is not ours says may be the very text that was to be kept out
    code = problem.code if isinstance(problem, TurnwalError) else type(problem).__name__
    why = problem.message if isinstance(problem, TurnwalError) else f"{code} was raised"
    if outcome.unknown is not None:
        text = f"{type(outcome.unknown).__name__}; what it said could not be recorded: {why}."
    elif outcome.error is not None:
        text = f"The tool raised {type(outcome.error).__name__}; what it said could not be recorded: {why}."
    else:
        text = f"The tool ran and returned, but its value could not be recorded: {why}."
    return Told(parts_of(text), outcome.error is not None or outcome.unknown is not None, {"unrecorded": code})


def said(error: BaseException) -> str:
    """An exception as text, even one that cannot say what it is."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - the tool's own code runs here
        return f"{type(error).__name__}, which does not say more"


def _arguments(ready: Ready, key: str) -> dict[str, Any]:
    keyed = ready.hints.keyed
    return ready.arguments if keyed is None else ready.arguments | {keyed: key}
