"""`python -m tests.fuzz.guided TARGET CORPUS [options of libFuzzer]`: the process that `guiding.py` starts.

turnwal is instrumented as it is imported, so it must not be imported before.
"""

import sys

import atheris


def main() -> None:
    """Fuzz one target until libFuzzer says that its time is over, or an input is a violation."""
    name = sys.argv.pop(1)
    with atheris.instrument_imports(include=["turnwal"]):
        from tests.fuzz.targets import TARGETS  # noqa: PLC0415 - see above
        from tests.fuzz.watching import watched  # noqa: PLC0415 - see above

        for number in range(20):  # what is imported late is instrumented too
            watched(TARGETS[name], bytes([number]) * 64, hang_s=60)

    def one(data: bytes) -> None:
        violation = watched(TARGETS[name], data)
        if violation is not None:
            raise AssertionError(f"{violation.kind} {violation.where}\n{violation.told}")

    atheris.Setup(sys.argv, one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
