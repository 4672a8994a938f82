"""Records that are files of their own."""

import re
from pathlib import Path

import pytest

from turnwal.formats.items import Fault
from turnwal.formats.numbered import found_in, numbered, record


def test_files_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for name in ("m_10.json", "m_9.json", "other.json"):
        (tmp_path / name).write_text("{}")
    assert [path.name for _, path in numbered(tmp_path, re.compile(r"m_(\d+)\.json"))] == ["m_9.json", "m_10.json"]
    assert numbered(tmp_path / "gone", re.compile("x")) == []


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ('{"text": "ab\\ud83d"}', {"text": "ab\ud83d"}),
        ('{"ratio": NaN}', {"ratio": pytest.approx(float("nan"), nan_ok=True)}),
    ],
)
def test_f35_f36_what_a_strict_parser_refuses_is_read(tmp_path: Path, written: str, read: dict[str, object]) -> None:
    path = tmp_path / "m_1.json"
    path.write_text(written)
    assert record(path) == read
    assert found_in(path) == read


@pytest.mark.parametrize(
    ("written", "kind"),
    [(b'{"a": ', "torn"), (b"", "torn"), (b"\0\0\0", "nul_run"), (b"[1]", "corrupt"), (b"[" * 9_999, "torn")],
)
def test_what_is_no_object_is_named(tmp_path: Path, written: bytes, kind: str) -> None:
    path = tmp_path / "m_1.json"
    path.write_bytes(written)
    found = record(path)
    assert isinstance(found, Fault)
    assert found.kind == kind
    assert found_in(path) is None


def test_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("{}")
    (tmp_path / "m_1.json").symlink_to(tmp_path / "secret.json")
    found = record(tmp_path / "m_1.json")
    assert isinstance(found, Fault)
    assert "link" in found.what
