"""What pytest needs under mutants: depth for the calls that mutmut puts between ours, few examples of each property.

Promises: no test is left out. What fails under a mutant fails, and need not be small.
"""

import sys
from typing import Final

import pytest
from hypothesis import HealthCheck, Phase, settings

EXAMPLES_MAX: Final = 25
"""Examples of one property. A mutant that these do not find is found by a test that was written for it, or survives."""
FRAMES: Final = 10_000
_SETTINGS: Final = "_hypothesis_internal_use_settings"
"""Where Hypothesis keeps the settings of a test."""


def pytest_configure() -> None:
    sys.setrecursionlimit(FRAMES)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        function = getattr(item, "obj", None)
        function = getattr(function, "__func__", function)
        if getattr(function, "is_hypothesis_test", False):
            before = getattr(function, _SETTINGS, settings.default)
            setattr(function, _SETTINGS, _fewer(before or settings()))


def _fewer(before: settings) -> settings:
    return settings(
        before,
        max_examples=min(EXAMPLES_MAX, before.max_examples),
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
