"""Session ids as file names: no two the same, none that a file system trips over."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from turnwal.core.errors import InvalidName
from turnwal.core.limits import SESSION_ID_CHARS_MAX
from turnwal.store.names import check_id, file_stem, is_digest_name, session_of

TEXT = st.text(st.characters(exclude_categories=()), min_size=1, max_size=80)


def is_id(text: str) -> bool:
    try:
        check_id(text)
    except InvalidName:
        return False
    return True


@pytest.mark.parametrize(
    ("session", "stem"),
    [
        ("order-7", "order-7"),
        ("Order", "%4frder"),
        ("a/b", "a%2fb"),
        ("..", "%2e%2e"),
        (".", "%2e"),
        (".hidden.", "%2ehidden%2e"),
        ("v1.2", "v1.2"),
        ("-rf", "%2drf"),
        ("nul\0", "nul%00"),
        ("é", "%c3%a9"),
        ("e\u0301", "e%cc%81"),
        ("\ud800", "%ed%a0%80"),
        ("%41", "%2541"),
        ("a~b", "a%7eb"),
    ],
)
def test_an_id_is_spelt_in_its_name(session: str, stem: str) -> None:
    assert file_stem(session) == stem
    assert session_of(stem) == session
    assert not is_digest_name(stem)


@given(TEXT.filter(is_id))
@example("\U0010ffff")
@example("x" * 181)
def test_a_name_is_safe_and_gives_the_id_back_or_is_a_digest(session: str) -> None:
    stem = file_stem(session)

    assert len(stem) <= 180
    assert stem == stem.lower()
    assert stem.isascii()
    assert not set(stem) - set("abcdefghijklmnopqrstuvwxyz0123456789_-.%~")
    assert stem[0] not in ".-"
    assert stem[-1] != "."
    assert session_of(stem) == (None if is_digest_name(stem) else session)


@given(TEXT.filter(is_id), TEXT.filter(is_id))
def test_two_ids_never_share_a_name(one: str, other: str) -> None:
    assert (file_stem(one) == file_stem(other)) == (one == other)


def test_long_ids_that_begin_alike_have_names_that_begin_alike() -> None:
    one, other = file_stem("x" * 300 + "1"), file_stem("x" * 300 + "2")

    assert one != other
    assert one[:100] == other[:100] == "x" * 100


@pytest.mark.parametrize("session", ["", 7, None, b"x", "x" * (SESSION_ID_CHARS_MAX + 1), "\ud83d\ude00"])
def test_what_is_no_id_is_refused(session: object) -> None:
    with pytest.raises(InvalidName):
        check_id(session)
    check_id("x" * SESSION_ID_CHARS_MAX)


@pytest.mark.parametrize(
    "stem", ["", "A", "a b", "%", "%4", "%4F", "%41%", "%61", "a~", "%ff", "é", ".a", "%2", "x" * 181]
)
def test_a_name_that_we_do_not_give_has_no_id(stem: str) -> None:
    assert session_of(stem) is None
