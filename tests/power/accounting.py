"""How often a recorded workload synced a file for what it acknowledged."""

from dataclasses import dataclass, field

from tests.power.judging import said
from turnwal.testing.power.operations import Mark, Recording, SyncBegins, SyncEnds


@dataclass
class Account:
    """Acknowledged batches, syncs of files, and what was acknowledged without one."""

    batches: int = 0
    syncs: int = 0
    unpaid: list[str] = field(default_factory=list)


def account(recording: Recording) -> Account:
    """A batch that is acknowledged needs a sync of a file that ended since the one before of its session."""
    found = Account()
    begun: dict[int, int | None] = {}
    counts: dict[tuple[str, str], int] = {}
    paid: dict[tuple[str, str], int] = {}
    for operation in recording.operations:
        match operation:
            case SyncBegins(number, node):
                begun[number] = node
            case SyncEnds(number):
                found.syncs += begun[number] in recording.before.contents
            case Mark(text):
                for store, heads in said([text]).heads.items():
                    for session, (count, _) in heads.items():
                        if count > counts.get((store, session), 0):
                            found.batches += 1
                            if found.syncs == paid.get((store, session), 0):
                                found.unpaid.append(f"{text} without a sync of any file since the last one")
                            counts[store, session], paid[store, session] = count, found.syncs
            case _:
                pass
    return found
