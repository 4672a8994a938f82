"""Hypothesis strategies for conversations: sessions as `session_rows` has them, with all that makes requests hard.

Promises:
- Replies of every target, carried from one to the other; ids that repeat, are empty, too long, or of characters that
  nobody allows; arguments that were cut off, and integers of thousands of digits; half characters; parts that nobody
  knows, and media of no bytes or in no base64; text that was shown and whose message never came; input that is free
  text.
- Compactions, one behind and over the other; results that were pruned and then summarised; outcomes that come late.
- Each log is one that a live session could have written, cut after any event.

Needs `hypothesis`, which turnwal itself does not.
"""

from typing import Any, Final

from hypothesis import strategies as st

from turnwal.core.errors import InvalidEvent
from turnwal.testing.replies import replies
from turnwal.testing.strategies import Row, Session, cut_anywhere, log_of
from turnwal.transcript.parsing import parse
from turnwal.transcript.targets import TARGETS

_IDS: Final = ("a", "a", "call_0", "", "k" * 41, "k" * 65, "x y", "ü", "\ud83d", "\udc8f", "fc/1:2", "abcdefgh9")
_NAMES: Final = ("pay", "look", "mcp/read file", "", "n" * 130, "2nd", "\ud83d")
_ARGUMENTS: Final = (
    "{}",
    '{"n":1}',
    '{"cut":',
    "",
    "[1]",
    '{"n":NaN}',
    '{"half":"\\ud83d"}',
    '{"whole":"\\ud83d\\ude00"}',
    f'{{"n":{"7" * 3_999}}}',
    "\ud83d",
)
_TEXTS: Final = ("done", "", " \n", "\ud83d", "no\u2028", "ends in a space ")
_IMAGE: Final = {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "iVBORw=="}
_PARTS: Final[tuple[dict[str, Any], ...]] = (
    _IMAGE,
    {"type": "uri", "modality": "image", "uri": "https://example.com/a.png"},
    {"type": "blob", "modality": "document", "mime_type": "application/pdf", "content": "JVBERi0="},
    _IMAGE | {"content": ""},
    _IMAGE | {"content": "iVBO\nRw==\n"},
    _IMAGE | {"content": "no base64"},
    {"type": "blob", "modality": "document", "mime_type": "application/pdf", "content": " \n"},
    {"type": "file", "modality": "document", "file_id": "file-1"},
    {"type": "of_tomorrow", "v": [1, {"x": 10**3000}]},
)


class _Conversation(Session):
    """A session whose models, tools and people say all that they may."""

    def id(self) -> str:
        return str(self.draw(st.sampled_from(_IDS)))

    def name(self) -> str:
        return str(self.draw(st.sampled_from(_NAMES)))

    def arguments(self, number: int) -> str:
        del number
        return str(self.draw(st.sampled_from(_ARGUMENTS)))

    def text(self) -> dict[str, Any]:
        return {"type": "text", "content": self.draw(st.sampled_from(_TEXTS))}

    def given(self) -> list[dict[str, Any]]:
        """What is given to a model: text and media."""
        media = [self.draw(st.sampled_from(_PARTS))] if self.draw(st.integers(0, 3)) == 0 else []
        return [*media, self.text()]

    def reply(self) -> dict[str, Any]:
        target = self.draw(st.sampled_from([None, *sorted(TARGETS)]))
        if target is not None:
            return parse(target, self.draw(replies(target, cut_short=True)))
        data = super().reply()
        for part in data["parts"]:
            if part["type"] == "tool_call" and self.draw(st.integers(0, 5)) == 0:
                part["format"] = "text"
        if self.draw(st.booleans()):
            data["parts"].insert(0, self.draw(st.sampled_from([{"type": "reasoning", "content": "hm"}, *_PARTS])))
        return data

    def ask(self) -> None:
        if self.draw(st.integers(0, 3)) == 0:
            delta = {"step": self.turn.step, "index": 0, "text": self.draw(st.sampled_from(["half an ans", "\ud83d"]))}
            self.write("assistant_delta", delta, self.turn.run)
        super().ask()

    def between(self) -> None:
        super().between()
        if self.draw(st.integers(0, 3)) == 0:
            self.write("system_message", {"parts": [self.text()]})
        for _ in range(self.draw(st.sampled_from([0, 0, 1, 2]))):
            self.compact()

    def compact(self) -> None:
        """Replace a range of the surface, where the rules let it be replaced."""
        seqs = [seq for seq, row in enumerate(self.rows) if row.run == "main"]
        first, last = sorted((self.draw(st.sampled_from(seqs)), self.draw(st.sampled_from(seqs))))
        type, data = "user_message", {"parts": [{"type": "text", "content": "summary"}], "replace": [first, last]}
        if self.rows[last].type == "tool_result" and self.draw(st.booleans()):
            pruned = [{"type": "text", "content": "pruned"}]
            type, data = "tool_result", {**self.rows[last].data, "parts": pruned, "replace": [last, last]}
        try:
            log_of([*self.rows, Row(type, data)])
        except InvalidEvent:
            return
        self.write(type, data)


@st.composite
def conversation_rows(draw: st.DrawFn, turns: int = 4) -> list[Row]:
    """What a live session wrote until its process died, after any event."""
    session = _Conversation(draw, dispatch=draw(st.sampled_from(["durable", "durable", None])))
    session.tell(turns)
    return draw(cut_anywhere(session.rows))
