"""Why a live turn ends."""

from typing import Literal

TurnReason = Literal["complete", "rejected", "error", "cancelled", "suspended"]
"""Why a live turn ends; `interrupted` is recovery's word."""


def reason_of(kind: type[BaseException] | None) -> TurnReason:
    """What a block that ends with such an exception records."""
    if kind is None:
        return "complete"
    return "error" if issubclass(kind, Exception) else "cancelled"
