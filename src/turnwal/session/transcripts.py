"""What a model is shown of a session that is open for writing: rendered for a provider, and kept ready as it grows.

Promises:
- Rendering shows what the log holds, so that a later process renders the same bytes. Where the session has a `redact`,
  the model is shown again what was recorded, and not what a handle of this process still knows.
- The log is read once; from then on each event is taken in as it gets its place. What is held is the conversation.
- Waits for no barrier.
"""

from typing import Any, Final

from turnwal.core.errors import Refused
from turnwal.core.line import Event
from turnwal.core.log import check_run
from turnwal.session.heeding import Heed, check_heed, heed_all
from turnwal.session.reading import Reading
from turnwal.session.settings import Settings
from turnwal.store.protocol import Store
from turnwal.transcript.comparing import Difference, compare
from turnwal.transcript.conversation import Outcomes, Waiting
from turnwal.transcript.render import Renderer, Rendering, renderer_of

_KEPT_MAX: Final = 32
"""How many renderers are kept: as many as sub-agents may work side by side, since reading the log anew for each request
costs more. But each takes every event in, so beyond it the one that was used least lately goes."""


class Transcripts(Reading):
    """The verbs that say what a model is shown."""

    def __init__(self, store: Store, id: str, settings: Settings) -> None:
        """Prepare; nothing is read until it is asked for."""
        super().__init__(store, id, settings)
        self._renderers: dict[tuple[object, ...], Renderer] = {}
        """By what they were made with, the one that was used last at the end."""

    def render(
        self,
        target: str,
        run: str = "main",
        *,
        model: str | None = None,
        waiting: Waiting = "refuse",
        outcomes: Outcomes = "note",
        partial: bool = False,
    ) -> Rendering:
        """Return the request-ready messages of a run for a target, with what was changed on the way out.

        The options are those of `turnwal.render`. The first rendering with a set of options reads the log; later ones
        cost what came since. Raises `InvalidName` for an unknown target, `Refused` where calls wait, and `Damaged`
        where stored bytes are lost.
        """
        check_run(run)
        options = (target, run, model, outcomes, partial)
        with self.order:
            # one that an interrupt leaves half done is not put back: it is made anew from the log
            renderer = self._renderers.pop(options, None)
            if renderer is None:
                renderer = renderer_of(target, run, model=model, outcomes=outcomes, partial=partial)
                renderer.conversation.feed_all(self._recorded())
            try:
                rendering = renderer.render(waiting=waiting)
            except Refused:
                self._keep(options, renderer)
                raise
            self._keep(options, renderer)
            return rendering

    def compare(
        self, target: str, messages: object, run: str = "main", *, check: Heed = "warn", **options: Any
    ) -> list[Difference]:
        """Compare what is about to be sent with what the session renders, and return how they differ.

        `messages` is what the request has under `messages` (Responses: `input`, Gemini: `contents`); leading system
        text is exempt. With `warn` a difference is a `TranscriptWarning`, with `strict` it is `Refused`, with `off`
        nothing is looked at. `options` are those of `render`.
        """
        check_heed(check)
        if check == "off":
            return []
        expected = self.render(target, run, **{"waiting": "placeholder", **options}).messages
        found = compare(target, messages, expected)
        heed_all(
            check,
            [f"{difference.code} at {difference.position}: {difference.message}" for difference in found],
            action="compare",
            subject=f"{target} messages",
            hint="record what the model is to see in the session, and send what `session.render` returns",
        )
        return found

    def _keep(self, options: tuple[object, ...], renderer: Renderer) -> None:
        self._renderers[options] = renderer
        while len(self._renderers) > _KEPT_MAX:
            del self._renderers[next(iter(self._renderers))]

    def _feed_renderers(self, event: Event) -> None:
        if event.type == "turn_end" and event.run != "main":
            # a sub-agent is asked once; who renders its run again reads the log again
            self._renderers = {made: kept for made, kept in self._renderers.items() if made[1] != event.run}
        for renderer in self._renderers.values():
            renderer.conversation.feed(event)
