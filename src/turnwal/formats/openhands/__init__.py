"""OpenHands SDK (OpenHands/software-agent-sdk at 611629e6, and 1.58.2 as it runs): the folders of its conversations."""

from typing import Final

from turnwal.formats.format import Format
from turnwal.formats.openhands.answering import repair
from turnwal.formats.openhands.reading import read, recognises

FORMAT: Final = Format(
    name="openhands",
    title="OpenHands",
    on_resume="runs_again",
    resume_text="OpenHands runs such a call again, or goes on from before it, so that the model knows nothing of it.",
    recognises=recognises,
    read=read,
    repair=repair,
    places=("~/.openhands/conversations",),
)
