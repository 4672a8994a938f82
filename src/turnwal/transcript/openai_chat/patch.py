"""Answering what a request leaves unanswered; see `chat/patch.py`."""

from turnwal.transcript.chat.patch import patched

__all__ = ["patched"]
