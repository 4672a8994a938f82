"""What is checked of a batch, where a line comes with what is known of it."""

import pytest

from tests.store.building import head_of, lines_of, log_of
from turnwal.core.chain import EMPTY, Chained, Head
from turnwal.core.errors import Refused
from turnwal.core.line import read
from turnwal.store.batch import check_batch


def chained(lines: list[bytes]) -> list[Chained]:
    return [Chained.of(line, read(line)) for line in lines]


def test_a_line_that_knows_its_event_reaches_the_same_head_as_its_bytes() -> None:
    lines = lines_of(log_of(3))

    assert check_batch(chained(lines), EMPTY, session="s") == check_batch(lines, EMPTY, session="s") == head_of(lines)


@pytest.mark.parametrize("wrong", ["the same line again", "one left out", "of another history", "behind another seq"])
def test_a_line_that_knows_its_event_is_refused_where_its_bytes_are(wrong: str) -> None:
    lines = lines_of(log_of(3))
    after = head_of(lines[:2])
    batch = {
        "the same line again": [lines[2], lines[2]],
        "one left out": [lines[3]],
        "of another history": [lines_of(log_of(3, text="other"))[2]],
        "behind another seq": [lines[2]],
    }[wrong]
    if wrong == "behind another seq":
        after = Head(after.count + 1, after.hash)

    for found in (batch, chained(batch)):
        with pytest.raises(Refused):
            check_batch(found, after, session="s")
