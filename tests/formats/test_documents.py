"""docs/doctor.md has every verdict, kind of evidence, kind of damage, thing that a tool may do, and format."""

import re
from pathlib import Path
from typing import get_args

from turnwal.cli.doctor import RESUMES
from turnwal.formats.diagnosis import OnResume, Verdict
from turnwal.formats.items import Evidence, FaultKind
from turnwal.formats.registry import FORMATS, format_of

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "doctor.md").read_text("utf-8")


def table(title: str) -> dict[str, str]:
    section = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", section, re.MULTILINE))


def test_every_word_is_explained() -> None:
    assert list(table("What is said of a session")) == list(get_args(Verdict))
    assert set(table("What is proved about a call")) == set(get_args(Evidence)) - {"answered", "blind"}
    assert list(table("What can be wrong with a file")) == list(get_args(FaultKind))
    assert list(table("What the tool does when the session is resumed")) == list(get_args(OnResume)) == list(RESUMES)


def test_every_format_has_its_row_and_its_page() -> None:
    rows = table("The formats")
    for name in FORMATS:
        known = format_of(name)
        assert name in rows
        (page,) = re.findall(r"\(formats/(\w+)\.md\)", rows[name])
        text = (DOCS / "formats" / f"{page}.md").read_text("utf-8")
        assert f"`{name}`" in text
        assert "not loaded in the tool itself" not in rows[name] or known.repair is not None
        assert known.name == name
