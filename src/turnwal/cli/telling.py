"""A plan told to a person: what recovery would append, by which rule, resting on which lines. Used by three verbs."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from turnwal.cli.screen import Column, Screen, Span
from turnwal.cli.words import RETRIES, risk_of
from turnwal.core.findings import Finding
from turnwal.core.kept import lacks
from turnwal.core.recovery import Plan, Repair
from turnwal.core.rules import RULES
from turnwal.store.protocol import Gap

SENTENCES: Final[Mapping[int, str]] = {rule.number: rule.sentence for rule in RULES}

_COLUMNS: Final = (
    Column("run", shrinks=True),
    Column("call"),
    Column("tool", shrinks=True),
    Column("class"),
    Column("rule", right=True),
    Column("seqs", shrinks=True),
    Column("retry"),
    Column("why", below=True),
)


RESUMED: Final = "first  who goes on, and what is open then, is recorded (session_resume)"
"""Recovery appends it before all else but the `damage` event."""


def tell_plan(screen: Screen, plan: Plan) -> None:
    """Print each lost call with its class, then what is closed around it."""
    lost = plan.lost_calls()
    if lost:
        screen.table(_COLUMNS, [_row(repair) for repair in lost])
        for repair in lost:
            child = _child(repair.data["metadata"])
            if child:
                screen.line(f"call {repair.data['call']} had the session {child}; it is recovered on its own")
    closers = [repair for repair in plan.repairs if repair.type != "tool_result"]
    for repair in closers:
        screen.line("then  ", closing(repair))


def tell_findings(screen: Screen, findings: Iterable[Finding]) -> None:
    """Print each finding on a line."""
    for finding in findings:
        where = f" at seq {seqs_text(finding.seqs)}" if finding.seqs else ""
        screen.line("finding  ", (finding.code, "yellow"), f"{where}: {finding.message}", wrap=True)


def closing(repair: Repair) -> str:
    """What a repair that is no result does, as a sentence."""
    where = "" if repair.run == "main" else f" of run {repair.run}"
    seqs = seqs_text(repair.because)
    match repair.type:
        case "approval_response":
            return f"the question about call {repair.data['call']} becomes void (asked at seq {seqs or '?'})"
        case "tool_outcome":
            return f"attempt {repair.data['attempt']} of call {repair.data['call']}: outcome unknown (seq {seqs})"
        case "step_end":
            return f"the step that began at seq {seqs}{where} ends, interrupted"
        case _:
            return f"the turn that began at seq {seqs}{where} ends, interrupted"


def gap_text(gap: Gap) -> str:
    """What is said of bytes that are no record and that no event covers."""
    line = f"line {gap.line_number}, " if gap.line_number else ""
    if gap.after < 0:
        rest = f"; {counted(gap.readable, 'readable record')} behind it" if gap.readable else ""
        return f"{line}offset {gap.position:,}: the first line {gap.reason}, so nothing is ever written here{rest}"
    where = f"{line}offset {gap.position:,}, behind seq {gap.after}"
    if gap.kept is not None:
        tail = f"; {gap.length:,} bytes behind seq {gap.after} are no record ({gap.kind})" if gap.length else ""
        return f"the log {lacks(gap.after + 1, gap.kept)}{tail}"
    if gap.readable:
        return f"{where}: a line {gap.reason}; {gap.readable} readable records follow, so something recorded was lost"
    size = f"{gap.length:,} bytes that are no record ({gap.kind})"
    return f"{where}: {size}; recovery keeps them and covers them with a damage event"


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the plural where it is one."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def seqs_text(seqs: Iterable[int]) -> str:
    """Seqs with commas between them."""
    return ", ".join(map(str, seqs))


def moment(milliseconds: int) -> str:
    """A time of the log as local time; the number itself where no calendar has it."""
    if not milliseconds:
        return ""
    try:
        return datetime.fromtimestamp(milliseconds / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, OSError, ValueError):
        return f"{milliseconds} ms"


def _row(repair: Repair) -> list[Span]:
    data: Mapping[str, Any] = repair.data
    metadata = data["metadata"]
    style = "bold red" if metadata["risk"] == "tool_outcome_unknown" else "yellow"
    return [
        repair.run,
        data["call"],
        data.get("name") or "",
        (risk_of(metadata), style),
        str(repair.rule),
        seqs_text(repair.because),
        RETRIES[metadata["retry"]],
        SENTENCES[repair.rule or 0],
    ]


def _child(metadata: Mapping[str, Any]) -> str:
    child = metadata.get("child")
    session = child.get("session") if isinstance(child, dict) else None
    return session if isinstance(session, str) else ""
