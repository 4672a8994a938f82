"""What a campaign prints, and whether everything held."""

from collections.abc import Sequence
from typing import Final

from tests.crash.witness import Totals

SHOWN_MAX: Final = 40


class Report:
    """What is printed, and whether everything held."""

    def __init__(self) -> None:
        self.ok = True

    def line(self, name: str, value: object) -> None:
        print(f"  {name:<44} {value}")

    def held(self, name: str, *, holds: bool) -> None:
        self.ok = self.ok and holds
        if not holds:
            print(f"  DID NOT HOLD: {name}")

    def totals(self, totals: Totals) -> None:
        """Print what must be nothing, and what was violated."""
        self.line("acknowledged events that are missing", totals.lost)
        self.line("calls that are misclassified", totals.misclassified)
        self.line("effects that no dispatch announces", totals.unannounced)
        self.violations(totals.violations)

    def violations(self, found: Sequence[str]) -> None:
        """Print what did not hold; there must be nothing."""
        for violation in found[:SHOWN_MAX]:
            print(f"  VIOLATED: {violation}")
        self.held("no violation", holds=not found)
