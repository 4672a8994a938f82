"""Every store passes the suite that is shipped, one test a check."""

import pytest

from tests.store.places import files, memory, postgres, sqlite
from turnwal.testing import conformance
from turnwal.testing.conformance import Check, Factory

FACTORIES: dict[str, Factory] = {"memory": memory, "file": files, "sqlite": sqlite, "postgres": postgres}


@pytest.mark.parametrize("factory", FACTORIES.values(), ids=FACTORIES)
@pytest.mark.parametrize("check", conformance.checks, ids=lambda check: check.__name__)
def test_a_store_conforms(check: Check, factory: Factory) -> None:
    check(factory)


def test_run_and_check_say_the_same() -> None:
    assert conformance.run(memory) == []
    conformance.check(memory)
