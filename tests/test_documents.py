"""What the documents say is held here: every public name, type, code and module is in them, and the examples run."""

import re
from pathlib import Path

import pytest

import turnwal
from turnwal.core import errors, findings, limits, types
from turnwal.transcript import check, comparing, render, targets

ROOT = Path(__file__).parent.parent
DOCS = {path.name: path.read_text("utf-8") for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]}


def test_every_public_name_is_loaded_and_documented() -> None:
    for name in turnwal.__all__:
        assert getattr(turnwal, name) is not None
        assert f"`turnwal.{name}" in DOCS["sessions.md"], name


def test_every_type_and_field_is_in_the_format() -> None:
    table = DOCS["format.md"].split("## Types")[1].splitlines()
    for type, fields in types.TYPES.items():
        row = next((line for line in table if line.startswith("|") and f"`{type}`" in line), "")
        assert row, type
        for field in set(fields) - {"name"}:
            assert re.search(rf"`{field}[`\s]", row), f"{type}.{field}"


def test_every_module_is_in_the_architecture() -> None:
    for room in ("core", "formats", "session", "store", "transcript"):
        for path in (ROOT / "src" / "turnwal" / room).rglob("*.py"):
            if room == "formats" and path.parent.name != room and path.name != "__init__.py":
                continue  # what is in the package of one tool is for its page to say
            if path.name != "__init__.py":
                assert f"`{path.name}`" in DOCS["architecture.md"], path
            elif path.parent.name != room:
                assert f"`{path.parent.name}/`" in DOCS["architecture.md"], path


def test_every_target_and_every_code_of_transcripts_is_documented() -> None:
    for target in targets.TARGETS:
        assert f"`{target}`" in DOCS["transcripts.md"], target
        assert f"`{target}`" in DOCS["cli.md"], target
    for title, codes in (
        ("What is changed", render.CODES),
        ("What is refused", check.CODES),
        ("What differs", comparing.CODES),
    ):
        section = DOCS["transcripts.md"].split(f"\n## {title}\n")[1].split("\n## ")[0]
        assert dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", section, re.MULTILINE)) == codes
        assert list(codes) == sorted(codes)


def test_the_examples_of_transcripts_run() -> None:
    namespace: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", DOCS["transcripts.md"], re.DOTALL)
    assert len(blocks) >= 3
    for block in blocks:
        exec(compile(block, "transcripts.md", "exec"), namespace)  # noqa: S102 - the example is the test


def test_every_code_of_an_error_and_of_a_finding_is_documented() -> None:
    codes = {
        error.code
        for error in vars(errors).values()
        if isinstance(error, type) and issubclass(error, errors.TurnwalError)
    }
    for code in codes | set(findings.CODES):
        assert f"`{code}`" in DOCS["errors.md"], code


def test_every_limit_has_a_reason() -> None:
    source = Path(limits.__file__).read_text("utf-8")
    for name in vars(limits):
        if name.isupper():
            assert re.search(rf'^{name}: Final = .*\n"""[A-Z]', source, re.MULTILINE), name


def test_the_readme_names_every_cost_that_is_missed() -> None:
    rows = [line.split(" | ") for line in (ROOT / "bench/results/costs.md").read_text("utf-8").splitlines()]
    missed = {row[0].removeprefix("| ") for row in rows if row[-1] == "**no** |"}
    said = DOCS["README.md"].split("- **Missed**")
    told = re.findall(r"\*([^*]+)\*", " ".join(said[1].split("\n\n")[0].split())) if said[1:] else []

    assert set(told) == missed


def test_links_lead_somewhere() -> None:
    for name, text in DOCS.items():
        base = ROOT if name == "README.md" else ROOT / "docs"
        for target in re.findall(r"\]\(([^)#]+)", text):
            assert target.startswith("http") or (base / target).exists(), (name, target)


@pytest.mark.parametrize("name", sorted(DOCS))
def test_a_document_speaks_of_the_project_alone(name: str) -> None:
    assert not re.search(r"\bTODO\b|\bFIXME\b|[A-Z]_HERE\b|/work/", DOCS[name])


def test_the_ten_lines_of_the_readme_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", DOCS["README.md"], re.DOTALL)
    replies: list[dict[str, object]] = [
        {"parts": [{"type": "tool_call", "id": "a", "name": "pay", "arguments": {"order": 7}}]},
        {"parts": [{"type": "text", "content": "done"}]},
    ]

    def ask_model(surface: list[turnwal.Event]) -> dict[str, object]:
        return replies[sum(event.type == "assistant_message" for event in surface)]

    exec(compile(code, "README.md", "exec"), {"ask_model": ask_model})  # noqa: S102 - the example is the test

    inspected = turnwal.open_store("sessions/").inspect("order-7")
    assert not inspected.plan
    assert [event.type for event in inspected.surface()] == [
        "user_message",
        "assistant_message",
        "tool_result",
        "assistant_message",
    ]
