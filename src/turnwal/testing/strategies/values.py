"""Data that JSON can hold and writers get wrong: lone surrogates, separators that split lines, odd numbers, depth."""

from typing import Any, Final

from hypothesis import strategies as st

_ODD_TEXTS: Final = (
    "",
    "\ud83d",
    "\udc8f",
    "\ude00\ud83d",
    "\ud83d\ude00",
    "\u0085\u2028\u2029",
    "\x00\x1f\x7f",
    '"\\/',
    "é😀",
    "\ufeff",
    "1" * 30,
)
_ODD_NUMBERS: Final = (
    0,
    -1,
    2**53 + 1,
    2**63,
    2**64,
    -(2**63) - 1,
    10**30,
    10**3999,
    -0.0,
    0.1,
    1e16,
    1e22,
    5e-324,
    1e308,
)


def texts() -> st.SearchStrategy[str]:
    """Any text, lone surrogates included."""
    return (
        st.sampled_from(_ODD_TEXTS)
        | st.text(st.characters(), max_size=12)
        | st.text("ab\ud83d\ude00\u2028", max_size=6)
    )


def json_values(max_leaves: int = 12) -> st.SearchStrategy[Any]:
    """Any value that JSON can hold."""
    leaves = (
        st.none()
        | st.booleans()
        | st.sampled_from(_ODD_NUMBERS)
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | texts()
    )
    wide = st.recursive(leaves, lambda inner: st.lists(inner, max_size=4) | _objects_of(inner), max_leaves=max_leaves)
    return wide | st.builds(_nested, leaves, st.integers(1, 190), st.booleans())


def json_objects(max_leaves: int = 12) -> st.SearchStrategy[dict[str, Any]]:
    """Any object that the data of an event can be."""
    return _objects_of(json_values(max_leaves))


def _objects_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(texts(), values, max_size=4).filter(_keys_stay_apart)


def _keys_stay_apart(value: dict[str, Any]) -> bool:
    read_back = {key.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass") for key in value}
    return len(read_back) == len(value)


def _nested(leaf: Any, depth: int, lists: bool) -> Any:  # noqa: FBT001 - drawn, never passed by hand
    for _ in range(depth):
        leaf = [leaf] if lists else {"k": leaf}
    return leaf
