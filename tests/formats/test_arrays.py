"""Arrays told element by element: the same whether the file is decoded at once or in pieces."""

import json
from pathlib import Path
from typing import Any

import pytest

from turnwal.formats import arrays
from turnwal.formats.arrays import elements
from turnwal.formats.items import Fault

VALUES: list[Any] = [
    {"role": "user", "content": 'é\u2028 "[],{}" \\ '},
    [],
    {},
    -12.5e3,
    120,
    True,
    None,
    "text, with ] and }",
    [[1, [2]], {"a": {"b": []}}],
    {"long": "x" * 300},
]


def told(path: Path, key: str | None = None) -> tuple[list[Any], list[tuple[str, str]]]:
    found: list[Any] = []
    faults: list[tuple[str, str]] = []
    for item in elements(path, key):
        if isinstance(item, Fault):
            faults.append((item.kind, item.place))
        else:
            assert item[0] == len(found)
            found.append(item[1])
    return found, faults


@pytest.fixture(params=[None, 1, 7, 64, 4096])
def streamed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int | None:
    """None: decoded at once; a number: in pieces of that many bytes."""
    size: int | None = request.param
    if size is not None:
        monkeypatch.setattr(arrays, "WHOLE_MAX", -1)
        monkeypatch.setattr(arrays, "_CHUNK", size)
    return size


@pytest.mark.usefixtures("streamed")
@pytest.mark.parametrize("indent", [None, 2])
def test_the_elements_of_an_array(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "a.json"
    for values in ([], VALUES[:1], VALUES, VALUES * 20):
        path.write_text(json.dumps(values, indent=indent, ensure_ascii=False), encoding="utf-8")
        assert told(path) == (values, [])
        path.write_text("\ufeff \n" + json.dumps(values, indent=indent) + "\n\n", encoding="utf-8")
        assert told(path) == (values, [])


@pytest.mark.usefixtures("streamed")
def test_the_elements_under_a_key(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"model": "m", "tools": VALUES, "n": {"messages": [1]}, "messages": VALUES, "z": 1}))
    assert told(path, "messages") == (VALUES, [])
    assert told(path, "tools") == (VALUES, [])
    path.write_text(json.dumps({"messages": []}))
    assert told(path, "messages") == ([], [])


@pytest.mark.usefixtures("streamed")
@pytest.mark.parametrize(
    ("content", "key"),
    [
        ("{}", None),
        ("{}", "messages"),
        ('{"messages":{}}', "messages"),
        ('{"a":[1]}', "messages"),
        ('{"a":[1],"messages":"x"}', "messages"),
        ("17", None),
        ("", None),
        ("{,}", "messages"),
        ('{"a"}', "messages"),
    ],
)
def test_where_there_is_no_array(tmp_path: Path, content: str, key: str | None) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    assert told(path, key) == ([], [("corrupt", "byte 0")])


@pytest.mark.usefixtures("streamed")
def test_an_array_cut_at_every_character_gives_what_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    text = json.dumps(VALUES[:9])
    whole = [len(json.dumps(VALUES[:count])) - 1 for count in range(10)]
    for size in range(1, len(text)):
        path.write_text(text[:size])
        found, faults = told(path)
        assert found == VALUES[: len(found)] or isinstance(found[-1], (int, float)), size
        assert len(found) >= sum(end <= size for end in whole) - 1 - (text[size - 1] in "0123456789."), size
        assert [kind for kind, _ in faults] == ["torn"], size


@pytest.mark.usefixtures("streamed")
def test_what_is_no_json_is_named_and_ends_the_telling(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('[{"a":1},{"b":oops},{"c":3}' + ',{"d":4}' * 2_000 + "]")
    assert told(path) == ([{"a": 1}], [("corrupt", "element 1")])


@pytest.mark.usefixtures("streamed")
def test_half_a_character_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'["a\\ud83d", "b\xff", 3]')
    assert told(path) == (["a\ud83d", "b\ufffd", 3], [])


@pytest.mark.usefixtures("streamed")
def test_nesting_that_is_too_deep_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("[1," + "[" * 100_000 + "]" * 100_000 + "]")
    assert told(path) == ([1], [("corrupt", "element 1")])


def test_an_element_over_the_limit_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "WHOLE_MAX", -1)
    monkeypatch.setattr(arrays, "_CHUNK", 64)
    monkeypatch.setattr(arrays, "_ELEMENT_MAX", 1_000)
    path = tmp_path / "a.json"
    path.write_text(json.dumps([1, "x" * 100_000, 2]))
    assert told(path) == ([1], [("corrupt", "element 1")])


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(elements(tmp_path / "absent"))
