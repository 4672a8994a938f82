"""Call ids on the way out: kept where the target takes them, else rewritten, the same on the call and its result.

Promises:
- Only what collides with an earlier id of the request, is empty, or breaks the target's rule is rewritten (F08, F40).
- The same history gives the same ids, whatever process or machine renders it; more history changes none of them.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from turnwal.core import keys


@dataclass(frozen=True, slots=True)
class IdRule:
    """What a target asks of call ids."""

    pattern: re.Pattern[str]
    """What an id must match as a whole."""
    prefix: str
    digits: int
    """A rewritten id is the prefix and so many hex digits; that matches the pattern."""


class Ids:
    """The call ids of one request."""

    def __init__(self, rule: IdRule) -> None:
        """Begin with no call."""
        self._rule = rule
        self._used: set[str] = set()
        self.taken: list[str] = []
        """What was taken, until somebody begins another list: for one message, so that it can be given back."""

    def take(self, key: int, id: str) -> str:
        """The id that stands for a call in the request: its own, or one made of its key."""
        rule = self._rule
        found = id
        attempt = 0
        while found in self._used or rule.pattern.fullmatch(found) is None:
            digest = sha256(f"turnwal id\n{keys.text(key)}\n{attempt}".encode()).hexdigest()
            found = f"{rule.prefix}{digest[: rule.digits]}"
            attempt += 1
        self._used.add(found)
        self.taken.append(found)
        return found

    def claim(self, names: Iterable[str]) -> bool:
        """Take names that no id can be, for what else is unique in the request; False, and none is taken, where one is.

        They are given back like ids.
        """
        wanted = list(names)
        if len(set(wanted)) < len(wanted) or not self._used.isdisjoint(wanted):
            return False
        self._used.update(wanted)
        self.taken += wanted
        return True

    def give_back(self, ids: Iterable[str]) -> None:
        """Forget the ids of messages that will be made again."""
        self._used.difference_update(ids)
