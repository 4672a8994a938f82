"""Where the answers of a repair belong, in files that are made of letters."""

from collections.abc import Sequence

import pytest

from turnwal.formats.diagnosis import OpenCall
from turnwal.formats.slots import Row, slots


def _rows(script: Sequence[str]) -> list[Row]:
    """`A:a,b` asks for calls, `M7:a` asks in a record of message 7, `M7` is one more of it, `R:a` answers, `U` ends."""
    rows = []
    for number, word in enumerate(script, 1):
        kind, _, ids = word.partition(":")
        names = tuple(ids.split(",")) if ids else ()
        place = f"line {number}"
        if kind == "R":
            rows.append(Row(place, answers=names))
        elif kind in ("A", "-", "U"):
            rows.append(Row(place, asks=names, ends=kind == "U"))
        else:
            rows.append(Row(place, key=kind, asks=names))
    return rows


def _placed(script: str, *calls: tuple[int, str]) -> str:
    """The script with the answers (`r:` …) that these calls, named by line and id, get."""
    words = script.split()
    opened = [OpenCall(id, None, "requested", None, (), f"line {number}") for number, id in calls]
    found = slots(_rows(words), opened)
    made = []
    for index, word in enumerate(words):
        made += [word, *(f"r:{call.id}" for call in found.get(index, ()))]
    return " ".join(made)


@pytest.mark.parametrize(
    ("script", "calls", "made"),
    [
        ("A:a", [(1, "a")], "A:a r:a"),
        ("A:a,b U", [(1, "a"), (1, "b")], "A:a,b r:a r:b U"),
        ("A:a A:b - A:c R:b U", [(1, "a"), (4, "c")], "A:a A:b - A:c r:a R:b r:c U"),
        ("A:a,b,c R:c R:a U", [(1, "b")], "A:a,b,c r:b R:c R:a U"),
        ("A:a,b R:a - R:x U", [(1, "b")], "A:a,b R:a r:b - R:x U"),
        ("A:a U A:b R:b", [(1, "a")], "A:a r:a U A:b R:b"),
        ("A:a R:a A:b U", [(3, "b")], "A:a R:a A:b r:b U"),
        ("A:a U A:a R:a", [(1, "a")], "A:a r:a U A:a R:a"),
        ("A:k,k R:k U", [(1, "k")], "A:k,k R:k r:k U"),
        ("M1:a M1 M1:b R:x U", [(1, "a"), (3, "b")], "M1:a M1 M1:b r:a r:b R:x U"),
        ("M1:a M2:b R:b", [(1, "a")], "M1:a r:a M2:b R:b"),
        ("A:a R:a U", [], "A:a R:a U"),
    ],
)
def test_answers_stand_behind_the_message_in_the_order_of_its_calls(
    script: str, calls: list[tuple[int, str]], made: str
) -> None:
    assert _placed(script, *calls) == made
