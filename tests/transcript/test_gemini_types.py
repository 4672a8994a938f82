"""The target `gemini` against the types and the replies of the package `google-genai`."""

import random
from typing import Any

import pytest
from google.genai import types

from turnwal.transcript.check import check
from turnwal.transcript.parsing import Log as Seeded
from turnwal.transcript.parsing import parse
from turnwal.transcript.patching import patch
from turnwal.transcript.render import render

from .test_gemini import CODE, FOUND, HISTORIES, INLINE, NEW, OLD, chunk, random_log, reply, sent


def through_the_package(contents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The contents as the package would send them; it refuses what its types do not have."""
    return [
        types.Content.model_validate(content).model_dump(mode="json", by_alias=True, exclude_unset=True)
        for content in contents
    ]


def standard(value: Any) -> Any:
    """JSON data with base64 in the standard alphabet where the package wrote the other one."""
    if isinstance(value, dict):
        return {
            name: item.translate(str.maketrans("-_", "+/")) if name in ("thoughtSignature", "data") else standard(item)
            for name, item in value.items()
        }
    return [standard(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("model", [OLD, NEW])
def test_the_package_takes_every_request_and_loses_nothing_of_it(seed: int, model: str) -> None:
    contents = sent(random_log(random.Random(seed)), model).messages

    assert standard(through_the_package(contents)) == standard(contents)


@pytest.mark.parametrize("contents", HISTORIES)
def test_a_history_of_content_objects_is_seeded(contents: list[dict[str, Any]]) -> None:
    objects: Any = [types.Content.model_validate(content) for content in contents]
    system = types.Content(parts=[types.Part(text="be kind")])

    rendering = sent(Seeded.seed("gemini", objects, system=system), None)
    assert standard(rendering.messages) == standard(contents)
    assert rendering.system == "be kind"


PARTS: list[dict[str, Any]] = [
    {"text": "hm", "thought": True},
    {"text": "yes", "thoughtSignature": "+/+/AA=="},
    CODE,
    FOUND,
    INLINE,
    {
        "functionCall": {"id": "c", "name": "f", "args": {"n": 2**60, "x": 1.5, "none": None}},
        "thoughtSignature": "/+8=",
    },
    {"functionCall": {"name": "g", "args": {}}},
]


def test_a_reply_object_says_what_its_json_says() -> None:
    data = reply(*PARTS)
    objects = types.GenerateContentResponse._from_response(response=data, kwargs={})

    parsed = parse("gemini", objects)
    assert parsed == parse("gemini", data)
    assert parsed["parts"][1]["native"]["block"] == PARTS[1]
    seeded = Seeded()
    seeded.append("user_message", {"parts": [{"type": "text", "content": "go"}]})
    seeded.append("assistant_message", parsed)
    assert render(seeded, "gemini", model=NEW).messages[1]["parts"] == PARTS


def test_the_chunk_objects_of_a_stream_say_what_their_json_says() -> None:
    chunks = [chunk(part) for part in PARTS[:-1]] + [chunk(PARTS[-1], finishReason="STOP")]
    objects = [types.GenerateContentResponse._from_response(response=data, kwargs={}) for data in chunks]

    parsed = parse("gemini", iter(objects))
    assert parsed == parse("gemini", chunks)
    assert parsed["parts"] == parse("gemini", reply(*PARTS))["parts"]
    assert "complete" not in parsed
    assert parse("gemini", objects[:-1])["complete"] is False


def test_parts_that_were_made_by_hand_are_read() -> None:
    made: Any = types.Content(role="user", parts=[types.Part.from_bytes(data=b"\xfb\xff", mime_type="image/png")])

    log = Seeded.seed("gemini", [made])
    assert log.events[0].data["parts"][0]["content"] == "+/8="


def test_contents_as_the_package_shows_them_are_healthy() -> None:
    response = types.Part.from_function_response(name="f", response={"result": "sunny"})
    contents = [
        types.Content(role="user", parts=[types.Part.from_text(text="weather?")]),
        types.Content(role="model", parts=[types.Part.from_function_call(name="f", args={"a": 1})]),
        types.Content(role="tool", parts=[response]),
    ]
    assert check("gemini", contents) == []
    assert patch("gemini", contents) == contents  # type: ignore[arg-type]  # it reads what they stand for
    made = render(Seeded.seed("gemini", contents), "gemini", model="gemini-2.5-pro").messages  # type: ignore[arg-type]
    assert [content["role"] for content in made] == ["user", "model", "user"]
