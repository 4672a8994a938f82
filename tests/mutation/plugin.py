"""What pytest needs under mutants: depth for the calls that mutmut puts between ours, and few examples of each property.

Promises: no test is left out. What fails under a mutant fails, and need not be small.
"""

import sys
from typing import Final

import pytest
from hypothesis import HealthCheck, Phase, settings

EXAMPLES_MAX: Final = 25
"""Examples of one property. A mutant that these do not find is found by a test that was written for it, or survives."""
FRAMES: Final = 10_000


def pytest_configure() -> None:
    sys.setrecursionlimit(FRAMES)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        inner = getattr(item, "obj", None)
        inner = getattr(inner, "__func__", inner)
        before = getattr(inner, "_hypothesis_internal_use_settings", None)
        if getattr(inner, "is_hypothesis_test", False):
            inner._hypothesis_internal_use_settings = settings(
                before or settings.default,
                max_examples=min(EXAMPLES_MAX, before.max_examples if before else EXAMPLES_MAX),
                deadline=None,
                derandomize=True,
                database=None,
                phases=[Phase.explicit, Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
