"""The plugin of pytest: a fixture by which the test of an agent kills it at every point, when that is asked for.

    def test_my_agent(crash_points):
        crash_points(agent, effects=...)        # what `turnwal.testing.crash.crash_points` takes

`pytest` alone runs the agent once and kills nobody; `pytest --turnwal-crash` kills it everywhere. It is loaded by every
run of pytest where turnwal is installed, so it imports nothing of turnwal before a test asks for the fixture.
"""

import shlex
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from turnwal.testing.crash import CrashReport


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the two options."""
    group = parser.getgroup("turnwal", "agents that write through turnwal")
    group.addoption(
        "--turnwal-crash", action="store_true", help="kill the agents of tests with `crash_points` at every point"
    )
    group.addoption(
        "--turnwal-crash-point", metavar="POINT", help="kill them at this point alone, as a failure names it"
    )


@pytest.fixture
def crash_points(request: pytest.FixtureRequest) -> "Callable[..., CrashReport]":
    """What runs an agent under test: once and plainly, or killed at every point where an option asks for that."""
    from turnwal.testing import crash  # noqa: PLC0415 - a run without such a test never pays for it

    point = request.config.getoption("turnwal_crash_point")
    if point is None and not request.config.getoption("turnwal_crash"):
        return crash.run_plainly
    test = shlex.quote(request.node.nodeid)
    return partial(
        crash.crash_points,
        only=point,
        again=lambda point: f"pytest {test} --turnwal-crash-point={shlex.quote(point)}",
    )
