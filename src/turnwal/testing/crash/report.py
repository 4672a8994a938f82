"""What is said when an agent was killed everywhere: what was seen, what did not hold, and how to see it again."""

from typing import Final

import msgspec

RULES: Final = {
    "acknowledged_lost": "an event that was acknowledged is not there, or another one is",
    "did_not_finish": "the agent, taken up again, raised or did not come to an end",
    "effect_again": "the world shows an effect more often than after the run that nobody killed",
    "left_open": "the agent came to its end, and its session still owes something",
    "not_reached": "too many points were not passed again: the agent is another one each time",
    "not_started_but_ran": "a call is called not started, and it ran",
    "ran_again": "an irreversible tool ran more often with these arguments than in the run that nobody killed",
    "ran_twice": "an irreversible tool ran twice for one call",
    "read_only_changed": "a tool that is declared read-only changed the world",
    "sent_differs": "what was sent to the model is not what the session says",
    "sent_invalid": "what was sent to the model breaks the provider's rules",
    "transcript_invalid": "what the session shows the model breaks the provider's rules",
    "unannounced": "an effect has the key of a call that was never dispatched",
}
"""Every rule that can be broken, with what it means."""

NAMED_MAX: Final = 6
"""How many more points are named where a rule was broken."""


class Failure(msgspec.Struct, frozen=True):
    """One thing that did not hold."""

    rule: str
    """One of `RULES`."""
    about: str
    """The call, the effect or the request: `call 6.1 of 'order-7': refund({"order":7})`."""
    said: str
    """What the log, or the declaration, says."""
    happened: str
    """What is known to have happened."""
    point: str = ""
    """Where the process was killed; empty in the run that nobody killed."""
    again: str = ""
    """How to see it again."""

    def __str__(self) -> str:
        where = f"killed at {self.point}" if self.point else "in the run that nobody killed"
        lines = [
            f"{self.rule}, {where}: {RULES[self.rule]}",
            f"    about     {self.about}",
            f"    said      {self.said}",
            f"    happened  {self.happened}",
        ]
        return "\n".join([*lines, f"    again     {self.again}"] if self.again else lines)


class CrashReport(msgspec.Struct):
    """What was seen."""

    points: list[str] = []
    """Where the agent was killed, in the order in which it passes them."""
    deaths: int = 0
    """Processes that were killed, those that were taking up again included."""
    unreached: list[str] = []
    """Points that were not passed again, so that nothing died there."""
    calls: dict[str, int] = {}
    """What the deaths left of calls: how many were to be answered as `declared`, `inferred`, `unknown`."""
    failures: list[Failure] = []

    def __str__(self) -> str:
        lost = ", ".join(f"{count} {word}" for word, count in sorted(self.calls.items())) or "none"
        seen = f"killed {self.deaths} times at {len(self.points)} points; calls that were lost: {lost}"
        if not self.failures:
            return f"everything held: {seen}"
        rules = dict.fromkeys(failure.rule for failure in self.failures)
        shown = [_of_one_rule([each for each in self.failures if each.rule == rule]) for rule in rules]
        return "\n".join([f"{len(rules)} rules are broken; {seen}", *shown])


def _of_one_rule(failures: list[Failure]) -> str:
    """The first failure in full, and where else the rule was broken."""
    first = failures[0]
    points = [point for point in dict.fromkeys(failure.point for failure in failures) if point != first.point]
    if not points:
        return str(first)
    more = f", and {len(points) - NAMED_MAX} more" if len(points) > NAMED_MAX else ""
    return f"{first}\n    also at   {', '.join(points[:NAMED_MAX])}{more}"


class CrashFailures(AssertionError):
    """Something did not hold; the text says what, where, and how to see it again."""

    def __init__(self, report: CrashReport) -> None:
        """`report` has all of it."""
        super().__init__(str(report))
        self.report = report
