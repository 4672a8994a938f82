"""Running a tool's body and keeping apart what can come of it."""

import contextvars
from typing import Any, NamedTuple

from turnwal.core.errors import OutcomeUnknown
from turnwal.session.tools import Ready, is_async


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


def _arguments(ready: Ready, key: str) -> dict[str, Any]:
    keyed = ready.hints.keyed
    return ready.arguments if keyed is None else ready.arguments | {keyed: key}
