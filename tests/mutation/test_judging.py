"""What is said of mutants; the run itself takes the better part of an hour and is `make mutation`."""

import ast

import pytest

from tests.crash.reporting import Report
from tests.mutation.__main__ import PAGE, ROOT, function_of, judge, unexplained


def test_a_mutant_is_known_by_its_function() -> None:
    assert function_of("turnwal.core.scan.xǁScanǁfeed__mutmut_12") == "scan.Scan.feed"
    assert function_of("turnwal.core.scan.xǁScanǁ__init____mutmut_1") == "scan.Scan.__init__"
    assert function_of("turnwal.core.line.x__plain__mutmut_3") == "line._plain"
    assert function_of("turnwal.core.line.x_make__mutmut_3") == "line.make"


def test_too_few_that_are_noticed_do_not_hold(capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"turnwal.core.line.x_nowhere__mutmut_{number}" for number in range(10)]
    for survivors, enough in ((1, True), (2, False)):
        report = Report()
        judge(report, {"line": {name: 0 if at < survivors else 1 for at, name in enumerate(names)}})
        told = capsys.readouterr().out
        assert ("DID NOT HOLD: at least 90%" not in told) is enough
        assert "says why a mutant of line.nowhere survives" in told
        assert not report.ok


def test_what_was_not_tried_does_not_hold(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report()
    judge(report, {"line": {"turnwal.core.line.x_make__mutmut_1": None}})
    assert "DID NOT HOLD: all mutants of line were tried" in capsys.readouterr().out


def test_the_page_names_functions_that_are_there() -> None:
    assert unexplained(["line.nowhere"], PAGE.read_text("utf-8")) == {"line.nowhere"}
    rows = [row.split("|")[1].strip(" `") for row in PAGE.read_text("utf-8").splitlines() if row.startswith("| `")]
    assert rows
    for row in rows:
        module, *path = row.split(".")
        node: ast.AST = ast.parse((ROOT / "src" / "turnwal" / "core" / f"{module}.py").read_text("utf-8"))
        for name in path:
            node = next(
                inner
                for inner in ast.walk(node)
                if isinstance(inner, (ast.FunctionDef, ast.ClassDef)) and inner.name == name
            )
