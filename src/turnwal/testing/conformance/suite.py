"""All checks, and running them."""

from typing import Final, NamedTuple

from turnwal.testing.conformance import histories, lines, names, owners, reading, refusals
from turnwal.testing.conformance.kit import Check, Factory, NotConforming

checks: Final[list[Check]] = [
    *lines.CHECKS,
    *refusals.CHECKS,
    *histories.CHECKS,
    *reading.CHECKS,
    *names.CHECKS,
    *owners.CHECKS,
]
"""All checks, in the order in which a new store best passes them."""


class Failure(NamedTuple):
    """A check that a store did not pass."""

    check: str
    reason: str


def run(factory: Factory) -> list[Failure]:
    """Return every check that the store does not pass, with the reason."""
    failures = []
    for check in checks:
        try:
            check(factory)
        except Exception as error:  # noqa: BLE001 - whatever a foreign store raises is a reason
            failures.append(Failure(check.__name__, f"{type(error).__name__}: {error}"))
    return failures


def check(factory: Factory) -> None:
    """Return if the store passes every check. Raises `NotConforming` at the first one that it does not pass."""
    for each in checks:
        try:
            each(factory)
        except Exception as error:
            raise NotConforming(f"{each.__name__}: {error}") from error
