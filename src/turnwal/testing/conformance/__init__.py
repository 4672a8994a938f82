"""What every store must do, as checks that any store can be put through.

A check is a function that takes a *factory*: called, it gives a context manager whose value can open the same storage
again and again, as a new process would.

    @contextmanager
    def my_store():
        with TemporaryDirectory() as directory:
            yield SimpleNamespace(open=lambda: MyStore(directory))

    conformance.check(my_store)                     # raises `NotConforming` at the first failure
    failures = conformance.run(my_store)            # or all of them

    @pytest.mark.parametrize("check", conformance.checks, ids=lambda check: check.__name__)
    def test_my_store(check):                       # or one test each
        check(my_store)

Promises: a store that passes may be handed to a session. Each check uses a storage of its own.
Does not: pull the plug, or have a store fail. That an acknowledged line survives the machine, and that all or nothing
of a history is there where `put` failed with an unknown outcome, needs the store's own tests.
"""

from turnwal.testing.conformance.kit import Check, Factory, NotConforming, Storage
from turnwal.testing.conformance.suite import Failure, check, checks, run

__all__ = ["Check", "Factory", "Failure", "NotConforming", "Storage", "check", "checks", "run"]
