"""What may not be appended, and leaves nothing behind."""

from typing import Final

from turnwal.core.chain import EMPTY, Head, digest
from turnwal.core.errors import OwnershipLost, Refused
from turnwal.core.log import Log
from turnwal.testing.conformance.kit import Check, Storage, check_in, refused, same
from turnwal.testing.conformance.material import claimed, grow, head_of, lines_of, new_log, stored

CHECKS: Final[list[Check]] = []
_check = check_in(CHECKS)


def _refuses(storage: Storage, what: str, kept: list[bytes], wrong: list[bytes], after: Head) -> None:
    """A wrong batch is refused, nothing of it is written, and the owner may go on with a right one."""
    with claimed(storage) as (store, claim):
        claim.append(kept, EMPTY)
        refused(what, (Refused, OwnershipLost), lambda: claim.append(wrong, after))
        same(stored(store), kept, f"after {what} was refused, the lines read")
    with claimed(storage) as (store, claim):
        refused(
            f"{what}, as the first thing of an owner,", (Refused, OwnershipLost), lambda: claim.append(wrong, after)
        )
        same(stored(store), kept, f"after {what} was refused, the lines read")
        good = Log.read(kept)
        grow(good)
        claim.append(lines_of(good, len(kept)), head_of(kept))
        same(stored(store), lines_of(good), "the lines read after a refusal")


@_check
def _a_gap_in_seq_is_refused(storage: Storage) -> None:
    """Seq counts without gaps."""
    kept = lines_of(new_log())
    wrong = b'{"seq":4,"prev":"%s","time":0,"type":"user_message","data":{}}' % digest(kept[-1]).encode()
    _refuses(storage, "a gap in seq", kept, [wrong], head_of(kept))


@_check
def _a_wrong_prev_is_refused(storage: Storage) -> None:
    """Each line names the hash of the one before."""
    kept = lines_of(new_log())
    wrong = b'{"seq":3,"prev":"%s","time":0,"type":"user_message","data":{}}' % digest(b"another").encode()
    _refuses(storage, "a wrong prev", kept, [wrong], head_of(kept))


@_check
def _a_reused_seq_is_refused(storage: Storage) -> None:
    """A seq that is taken is taken, also when the line names the right hash."""
    kept = lines_of(new_log())
    wrong = b'{"seq":2,"prev":"%s","time":0,"type":"user_message","data":{}}' % digest(kept[-1]).encode()
    _refuses(storage, "a seq that is taken", kept, [wrong], head_of(kept))


@_check
def _a_line_that_exists_is_never_replaced(storage: Storage) -> None:
    """A batch that builds on an older head, in itself sound, does not take the place of what stands there."""
    log = new_log()
    kept = lines_of(log)
    other = Log.read(kept[:2])
    other.append("user_message", {"parts": [{"type": "text", "content": "instead"}]})
    _refuses(storage, "a second line in the same place", kept, lines_of(other, 2), head_of(kept[:2]))


@_check
def _a_second_beginning_is_refused(storage: Storage) -> None:
    """A session begins once."""
    kept = lines_of(new_log())
    _refuses(storage, "a second line 0", kept, lines_of(new_log("other")), EMPTY)


@_check
def _a_batch_is_all_or_nothing(storage: Storage) -> None:
    """A batch whose second line is wrong leaves nothing of its first behind."""
    log = new_log()
    kept = lines_of(log)
    head = log.head
    grow(log, 2)
    good, skipped = lines_of(log, len(kept))
    _refuses(
        storage, "a batch with a wrong line in it", kept, [good, skipped.replace(b"message", b"massage"), good], head
    )


@_check
def _two_lines_in_one_are_refused(storage: Storage) -> None:
    """A line holds no newline: a store that lets one in holds another session than it was given."""
    log = new_log()
    kept, head = lines_of(log), log.head
    grow(log, 2)
    _refuses(storage, "a line with a newline in it", kept, [b"\n".join(lines_of(log, len(kept)))], head)
