"""The target `bedrock` against the service model of the package `botocore`."""

import random
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import botocore.session  # type: ignore[import-untyped]
import pytest
from botocore.validate import ParamValidator  # type: ignore[import-untyped]

from turnwal.transcript.bedrock.blobs import with_bytes

from .test_bedrock import HISTORIES, random_log, sent


@cache
def _operation() -> Any:
    session = botocore.session.get_session()
    return session.get_service_model("bedrock-runtime").operation_model("Converse").input_shape


def refused(messages: list[dict[str, Any]]) -> list[str]:
    """What the service model refuses: by the validator of the package, and what it leaves to the service."""
    request = {"modelId": "m", "messages": messages}
    report = ParamValidator().validate(request, _operation())
    return [*filter(None, report.generate_report().split("\n")), *_limits(request, _operation(), "request")]


def _limits(value: Any, shape: Any, where: str) -> Iterator[str]:
    """The patterns, lengths and words that the model states and the validator does not look at."""
    if shape.type_name == "structure" and not shape.is_document_type:
        for name, inner in value.items():
            yield from _limits(inner, shape.members[name], f"{where}.{name}")
    elif shape.type_name == "list":
        for at, inner in enumerate(value):
            yield from _limits(inner, shape.member, f"{where}[{at}]")
    elif shape.type_name == "string":
        if "pattern" in shape.metadata and not re.fullmatch(shape.metadata["pattern"], value):
            yield f"{where}: {value!r} does not match {shape.metadata['pattern']}"
        if len(value) > shape.metadata.get("max", len(value)) or (shape.enum and value not in shape.enum):
            yield f"{where}: {value!r} is too long, or no word that is known"


@pytest.mark.parametrize("seed", range(60))
def test_the_service_model_takes_every_request(seed: int) -> None:
    assert refused(with_bytes(sent(random_log(random.Random(seed))).messages)) == []


@pytest.mark.parametrize("messages", HISTORIES)
def test_the_service_model_takes_the_histories_of_the_tests(messages: list[dict[str, Any]]) -> None:
    assert refused(with_bytes(messages)) == []


def test_the_service_model_refuses_what_is_wrong() -> None:
    wrong = [
        {
            "role": "tool",
            "content": [
                {"toolUse": {"toolUseId": "a b", "name": "f"}},
                {"image": {"format": "png", "source": {"bytes": 1}}},
            ],
        }
    ]

    report = "\n".join(refused(wrong))
    for part in ("input", "bytes", "role: 'tool'", "'a b' does not match"):
        assert part in report
