"""Running a tool's body and keeping apart what can come of it."""

import contextvars
from typing import Any, NamedTuple

from turnwal.core.errors import CallerError, OutcomeUnknown, TurnwalError
from turnwal.session.tools import Parts, Ready, is_async, parts_of


class Outcome(NamedTuple):
    """What a body came to: a value, an error, or an answer that was lost."""

    value: Any = None
    error: Exception | None = None
    unknown: Exception | None = None


def execute(ready: Ready, key: str) -> Outcome:
    """Call the tool. Exceptions are outcomes; an interrupt is not one and passes through."""
    try:
        return Outcome(value=ready.function(**_arguments(ready, key)))
    except OutcomeUnknown as lost:
        return Outcome(unknown=lost)
    except Exception as error:  # noqa: BLE001 - whatever a tool raises is its result
        return Outcome(error=error)


async def execute_async(ready: Ready, key: str) -> Outcome:
    """Call the tool, asynchronous or not; a synchronous one runs in a thread. A cancellation passes through."""
    import asyncio  # noqa: PLC0415 - a synchronous program never pays for it

    if not is_async(ready.function):
        loop = asyncio.get_running_loop()
        context = contextvars.copy_context()
        outcome = await loop.run_in_executor(None, context.run, execute, ready, key)
        if not hasattr(outcome.value, "__await__"):
            return outcome
        awaited = outcome.value
    else:
        awaited = ready.function(**_arguments(ready, key))
    try:
        return Outcome(value=await awaited)
    except OutcomeUnknown as lost:
        return Outcome(unknown=lost)
    except Exception as error:  # noqa: BLE001 - whatever a tool raises is its result
        return Outcome(error=error)


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
