"""Every regular expression of turnwal takes time in proportion to the text, whoever wrote the text.

What is compared is the time for four times the text, and for sixteen times that: no absolute time decides.
"""

import ast
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from itertools import pairwise, product
from pathlib import Path
from typing import Any, Final

import pytest

from turnwal.core.errors import TurnwalError
from turnwal.store.urls import open_store, shown

SOURCE: Final = Path(__file__).parents[2] / "src"
_FUNCTIONS: Final = frozenset(
    {"compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
)
SIZES: Final = (16 * 1024, 64 * 1024, 1024 * 1024)
POWER: Final = 1.5
"""With which power of the text the time may grow. More than the first: a long text leaves the processor's caches. Less
than the second, which is what bad expressions take."""
TRIES: Final = 9
_LEAST_S: Final = 1e-4
"""What a clock cannot tell from nothing counts as this; the square of the smallest text would be seconds."""

PUMPS: Final[dict[str, tuple[str, ...]]] = {
    "turnwal.core.kept._SLOT": ("turnwal head ", "1", "1:", "0" * 64),
    "turnwal.core.keys._KEY": ("1", "0", "1.", "0."),
    "turnwal.core.line._LONG_INTEGER": ("1", "1 ", "1" * 3_999 + " ", "1" * 4_000 + "-"),
    "turnwal.core.line._SURROGATE": ("a", "\ud83d", "\ud83da"),
    "turnwal.core.line._TOKEN": ('"', '\\"', '"\\', "[", "{]", '"a', "\\"),
    "turnwal.formats.claude_code.records._HALF": ("\\", "\\u", "\\ud", "\\ud8"),
    "turnwal.formats.claude_code.repair._PLACE": ("line ", "line 1", "1"),
    "turnwal.formats.codex.repair._UUID": ("0", "0-", "00000000-0000-"),
    "turnwal.formats.finding._SERVER": ("postgres", "postgresql://", "/", "\n"),
    "turnwal.formats.google_adk.reading._LETTER": ("_", "_a", "a"),
    "turnwal.formats.langgraph.state._HEAD": ("1", ".", "1.", "\n"),
    "turnwal.formats.openhands.reading.FILE": ("event-", "event-00000-", "0", "a-"),
    "turnwal.formats.openhands.reading:fullmatch": ("data:", ";base64,", "a", "data:a;base64,", "a;"),
    "turnwal.formats.sampling._FIELD": ('"', '\\"', " ", ",", '"a" ', '"a":', ' , "'),
    "turnwal.formats.strands._MESSAGE": ("message_", "1", "message_1"),
    "turnwal.formats.strands._UNFINISHED": (".strands_", ".tmp", "."),
    "turnwal.store.fileput._LEFTOVER": (".turnwal-part-", "1", "1-"),
    "turnwal.store.hints._LEAD": ('{"seq":', "1", '"type":"', "\\"),
    "turnwal.store.names._SPELT": ("a", "%", "%20", "%2", "a%"),
    "turnwal.store.names._SPLIT_PAIR": ("\ud83d", "\udc8f", "a"),
    "turnwal.store.names:sub": ("%", "%2", "%20", "a"),
    "turnwal.store.postgres_link:sub": ("%", "%s", "s"),
    "turnwal.store.urls._ESCAPE": ("%", "%2", "%20", "a"),
    "turnwal.store.urls._HEADS": ("?heads", "&heads=", "&", "heads=a"),
    "turnwal.store.urls._PASSWORD": ("?password=", "&sslpassword", "&", "password="),
    "turnwal.store.urls._SCHEME": ("a", "a:", ":", "+", "\n"),
    "turnwal.store.urls._USER": ("/", "//", "//a:", "//a", ":", "a:"),
    "turnwal.testing.faults._TEXT": ('"', '\\"', "a", '"a'),
    "turnwal.testing.power.tracing._LINE": ("1", "1 ", "<... ", "a(", " "),
    "turnwal.testing.power.tracing._RESULT": (")", ") = ", "=", "1", ") = 0x"),
    "turnwal.testing.power.tracing._SPLIT": ("(", ", ", "]", "a"),
    "turnwal.transcript.anthropic.check._BASE64": ("a", "=", "a="),
    "turnwal.transcript.anthropic.check._ID": ("a", "-", "a "),
    "turnwal.transcript.anthropic.check._NAME": ("a", "-", "a "),
    "turnwal.transcript.anthropic.render.ids": ("a", "-", "a "),
    "turnwal.transcript.arguments._BRACKET": ('"', '\\"', '"\\', "[", "{]", '"a', "\\"),
    "turnwal.transcript.arguments._ESCAPE": ("\\", "\\u", "\\ud83d", "\\ud83d\\u", "\\ud83d\\udc"),
    "turnwal.transcript.bedrock.check._BASE64": ("a", "=", "a="),
    "turnwal.transcript.bedrock.check._DOCUMENT": ("a", " ", "[", "a "),
    "turnwal.transcript.bedrock.check._ID": ("a", "-", "a "),
    "turnwal.transcript.bedrock.check._TOOL": ("a", "-", "a "),
    "turnwal.transcript.bedrock.check:search": ("a", " ", "a "),
    "turnwal.transcript.bedrock.media.NAME": ("a", " ", "a ", "a  "),
    "turnwal.transcript.bedrock.render._PROFILE": ("us.", "u", "us-gov.", "."),
    "turnwal.transcript.bedrock.render._VENDOR": ("a", "a.", ".", "1"),
    "turnwal.transcript.bedrock.render.ids": ("a", "-", "a "),
    "turnwal.transcript.binary._BASE64": ("a", "=", "a="),
    "turnwal.transcript.chat.check._HALF": ("\\", "\\u", "\\ud83d", "\\ud83d\\u", "\\ud83d\\udc"),
    "turnwal.transcript.chat.check._NAME": ("a", "-", "a "),
    "turnwal.transcript.check._HALF": ("a", "\ud83d", "\ud83da"),
    "turnwal.transcript.gemini.check._BASE64": ("a", "=", "a="),
    "turnwal.transcript.gemini.check._FUNCTION": ("a", ".", "1"),
    "turnwal.transcript.gemini.check._JOINT": ("_", "_a", "a"),
    "turnwal.transcript.gemini.parse._JOINT": ("_", "_a", "a"),
    "turnwal.transcript.gemini.parse._PLAIN_NAME": ("a", ".", "1"),
    "turnwal.transcript.gemini.render._MAJOR": ("gemini-", "1", "gemini-1"),
    "turnwal.transcript.gemini.render._NAME": ("a", ".", "1"),
    "turnwal.transcript.gemini.render._NOT_IN_NAME": ("a", " ", "a "),
    "turnwal.transcript.gemini.render._RELEASE": ("-", "-1", "-111", "1"),
    "turnwal.transcript.gemini.render.ids": ("a", "\ud83d", "a\ud83d"),
    "turnwal.transcript.gemini.stream._STEP": (".", ".a", "['", "[", "['a", '["', "[1", "'", "]"),
    "turnwal.transcript.mistral.check.id": ("a", "a "),
    "turnwal.transcript.mistral.render.ids": ("a", "a "),
    "turnwal.transcript.openai_chat.check._NAME": ("a", "<", "a "),
    "turnwal.transcript.openai_chat.check.id": ("a", "\n"),
    "turnwal.transcript.openai_chat.render._NAME": ("a", "<", "a "),
    "turnwal.transcript.openai_chat.render.ids": ("a", " ", "a "),
    "turnwal.transcript.openai_responses.check._HALF": ("\\", "\\u", "\\ud83d", "\\ud83d\\u", "\\ud83d\\udc"),
    "turnwal.transcript.openai_responses.check._ID": ("a", "-", "a "),
    "turnwal.transcript.openai_responses.check._NAME": ("a", "-", "a "),
    "turnwal.transcript.openai_responses.items._NAME": ("a", "-", "a "),
    "turnwal.transcript.openai_responses.render.ids": ("a", "-", "a "),
    "turnwal.transcript.target._DATED": ("-v", "-v1", "-v1:", "1", "-", "-2024-01-", "@2", "-latest"),
    "turnwal.transcript.words._ALLOWED": ("a", "-", "a "),
    "turnwal.transcript.words._NOT_ALLOWED": ("a", " ", "a "),
    "turnwal.transcript.words._SURROGATE": ("a", "\ud83d", "\ud83da"),
}
"""What a text repeats that makes each expression try as much as it can."""


def expressions() -> Iterator[tuple[str, "re.Pattern[Any]"]]:
    """Every expression in the source, by module and name, or by the function of `re` that it is given to."""
    for path in sorted((SOURCE / "turnwal").rglob("*.py")):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        tree = ast.parse(path.read_text("utf-8"))
        owners = {
            id(inner): owner
            for owner in ast.walk(tree)
            if _name(owner)
            for inner in ast.walk(owner)
            if inner is not owner
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _is_expression(node):
                owner = owners.get(id(node))
                name = f":{node.func.attr}" if owner is None else f".{_name(owner)}"  # type: ignore[attr-defined]
                yield f"{module}{name}", _pattern(node, module)


def _name(node: ast.AST) -> str | None:
    """The name that a value is given to."""
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Call):
        return node.targets[0].id if _is_expression(node.value) and _function(node.value) == "compile" else None
    return node.arg if isinstance(node, ast.keyword) else None


def _function(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def _is_expression(node: ast.Call) -> bool:
    function = node.func
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "re"
        and function.attr in _FUNCTIONS
    )


def _pattern(node: ast.Call, module: str) -> "re.Pattern[Any]":
    names = vars(import_module(module))
    given = [eval(compile(ast.Expression(each), module, "eval"), names) for each in node.args[:1]]  # noqa: S307
    flags = [each for each in node.args[1:] if isinstance(each, ast.Attribute) and each.attr.isupper()]
    return re.compile(given[0], eval(compile(ast.Expression(flags[0]), module, "eval"), names) if flags else 0)  # noqa: S307


FOUND: Final = dict(expressions())


def test_every_expression_has_its_texts() -> None:
    assert sorted(FOUND) == sorted(PUMPS)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", sorted(PUMPS))
def test_an_expression_takes_time_in_proportion_to_the_text(name: str) -> None:
    befores = ("", '"') if '"' in str(FOUND[name].pattern) else ("",)
    for way, pump, before in product(ways(name), PUMPS[name], befores):
        assert_linear(FOUND[name], way, partial(_text, before, pump))


def _text(before: str, pump: str, size: int) -> str:
    """So much of a pump, and an end that most expressions do not take, so that they try again."""
    return f"{before}{pump * (size // len(pump))}\x7f"


def ways(name: str) -> set[str]:
    """How an expression is used: anywhere in a text, from its beginning, or as the whole of it."""
    module, _, called = name.replace(":", ".").rpartition(".")
    path = SOURCE.joinpath(*module.split("."))
    text = (path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py").read_text("utf-8")
    functions = {called} & _FUNCTIONS or set(re.findall(rf"\b{called}\.({'|'.join(_FUNCTIONS)})\b", text))
    # one that is handed on is held against a whole name: see `ids.py` and the `_matches` of each checker
    return {each if each in ("match", "fullmatch") else "finditer" for each in functions or {"fullmatch"}}


def assert_linear(pattern: "re.Pattern[Any]", way: str, text_of: Callable[[int], str]) -> None:
    """Hold that the time grows as the text does; other work only adds to a time, so the least of a few counts."""
    texts: list[Any] = [text_of(size) for size in SIZES]
    if isinstance(pattern.pattern, bytes):
        texts = [text.encode("utf-8", "surrogatepass") for text in texts]
    before = max(_spent(pattern, way, texts[0]), _LEAST_S)
    for smaller, text in pairwise(texts):
        allowed = before * (len(text) / len(smaller)) ** POWER
        spent = min(tries(allowed, pattern, way, text))
        assert spent <= allowed, f"{pattern.pattern!r:.80} {way} {text[:20]!r} {len(text):,}: {spent} > {allowed}"
        before = max(spent, _LEAST_S)


def tries(enough: float, pattern: "re.Pattern[Any]", way: str, text: Any) -> list[float]:
    """The times of a few tries, up to the first that is short enough."""
    found: list[float] = []
    while len(found) < TRIES and (not found or found[-1] > enough):
        found.append(_spent(pattern, way, text))
    return found


def _spent(pattern: "re.Pattern[Any]", way: str, text: Any) -> float:
    began = time.thread_time()
    if way == "finditer":
        for _ in pattern.finditer(text):
            pass
    else:
        getattr(pattern, way)(text)
    return time.thread_time() - began


def test_the_square_of_a_text_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.test_expressions.SIZES", (4 * 1024, 16 * 1024))

    with pytest.raises(AssertionError, match="finditer"):
        assert_linear(re.compile(r"(//[^/:@?]*:).*@"), "finditer", lambda size: "//a:" * (size // 4))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("pump", ["//a:", "//", "@", "//a:@", "?", "/@", "%", "&password=", "a:"])
def test_a_url_is_shown_and_refused_in_time_in_proportion_to_it(pump: str) -> None:
    def shown_in(size: int) -> float:
        url = f"postgresql:{pump * (size // len(pump))}"
        began = time.thread_time()
        shown(url)
        with suppress(TurnwalError):
            open_store(url)
        return time.thread_time() - began

    before = max(shown_in(SIZES[1]), _LEAST_S)
    allowed = before * (SIZES[2] / SIZES[1]) ** POWER
    assert min(shown_in(SIZES[2]) for _ in range(3)) <= allowed
