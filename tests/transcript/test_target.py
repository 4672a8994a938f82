"""What targets share."""

import pytest

from turnwal.transcript.target import family


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("anthropic.claude-sonnet-4-5-20250929-v1:0", "anthropic.claude-sonnet-4-5"),
        ("gpt-5-2025-08-07", "gpt-5"),
        ("gpt-4-0613", "gpt-4"),
        ("magistral-medium-2509", "magistral-medium"),
        ("magistral-medium-latest", "magistral-medium"),
        ("models/gemini-3-pro", "gemini-3-pro"),
        ("r1-1776", "r1-1776"),
        ("gpt-5", "gpt-5"),
        ("o3", "o3"),
    ],
)
def test_an_alias_and_the_release_behind_it_are_one_model(model: str, expected: str) -> None:
    assert family(model) == expected
