"""Media whose bytes no provider takes: words stand for them, and what only looks odd is put right."""

import json
from typing import Any

import pytest

from tests.core.build import ask, log_of, result
from turnwal.transcript.binary import base64_of
from turnwal.transcript.check import check
from turnwal.transcript.render import render
from turnwal.transcript.targets import TARGETS

targets = pytest.mark.parametrize("target", sorted(TARGETS))
KINDS = [("image", "image/png"), ("document", "application/pdf"), ("audio", "audio/wav")]


def blob(content: Any, modality: str = "image", mime: str = "image/png") -> dict[str, Any]:
    return {"type": "blob", "modality": modality, "mime_type": mime, "content": content}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("aGVsbG8=", "aGVsbG8="),
        ("aGVs\nbG8=\n", "aGVsbG8="),
        (" aGVs\r\nbG8 ", "aGVsbG8="),
        ("-_-_", "+/+/"),
        ("-_8", "+/8="),
        ("", None),
        ("\n", None),
        ("====", None),
        ("aGVsb", None),
        ("aG=VsbG8", None),
        ("no base64!", None),
        ("data:image/png;base64,aGVs", None),
        (7, None),
    ],
)
def test_base64_is_what_every_provider_takes_or_none(content: Any, expected: str | None) -> None:
    assert base64_of(blob(content)) == expected


def test_what_is_no_blob_has_no_bytes() -> None:
    assert base64_of({"type": "text", "content": "aGVsbG8="}) is None


@targets
@pytest.mark.parametrize("content", ["", " \n", "no base64!", "aGVsb"])
@pytest.mark.parametrize(("modality", "mime"), KINDS)
def test_words_stand_for_media_of_no_bytes(target: str, content: str, modality: str, mime: str) -> None:
    part = blob(content, modality, mime)
    given = ("user_message", {"parts": [part, {"type": "text", "content": "see"}]})
    shot = result("c1", "1.0", parts=[part])
    made = render(log_of(given, ask("c1"), shot), target)
    assert "part_replaced" in [finding.code for finding in made.findings]
    assert json.dumps(made.messages).count("not sent here") == 2
    assert check(target, made.messages) == []


@targets
def test_white_space_in_base64_is_not_sent(target: str) -> None:
    texts = [{"type": "text", "content": "see"}]
    plain, broken = (log_of(("user_message", {"parts": [blob(data), *texts]})) for data in ("aGVsbG8=", "aGVs\nbG8=\n"))
    made = render(broken, target)
    assert made.messages == render(plain, target).messages
    assert "aGVsbG8=" in json.dumps(made.messages)
    assert check(target, made.messages) == []
