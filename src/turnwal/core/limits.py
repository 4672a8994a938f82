"""Every limit of turnwal in one table, each with its reason.

Over a limit is a named error, never a silent cut (field case F26). Sizes are bytes unless the name says otherwise.
"""

from typing import Final

LINE_BYTES_MAX: Final = 64 * 1024 * 1024
"""One line. Tool output of 15 MB in one record was seen in public logs; 64 MiB leaves room and still fits in memory."""

NESTING_MAX: Final = 200
"""Depth of `data`. Parsers of other languages give up between 200 and 1,000; ours must not depend on the stack."""

INTEGER_DIGITS_MAX: Final = 4_000
"""Digits of one integer. CPython refuses to convert more than 4,300 by default."""

TIME_MS_MAX: Final = 2**63 - 1
"""Magnitude of a time. What a signed 64-bit integer holds, which every store has a column for."""

SESSION_ID_CHARS_MAX: Final = 2_000
"""Length of a session id. Ids are for people and file names; a longer one is a payload in the wrong place."""

RUN_CHARS_MAX: Final = 1_000
"""Length of a run's name, which stands on every line of a sub-agent."""

DAMAGE_RAW_BYTES_MAX: Final = 64 * 1024
"""How much of a damaged tail is copied into its `damage` event. The rest is known by length and digest."""

LOST_SEQS_MAX: Final = 10_000
"""How many lost seqs a `damage` event lists one by one."""

PENDING_BYTES_MAX: Final = 8 * 1024 * 1024
"""What may be appended and not yet durable. Bounds memory, and what a crash can take from the unacknowledged."""

PENDING_EVENTS_MAX: Final = 10_000
"""The same bound counted in events."""

FINDINGS_PER_CODE_MAX: Final = 100
"""Findings kept of one code; more are counted. A log of a million odd lines must not fill memory."""

OWNER_RETRY_S: Final = 0.1
"""How long a claim is retried before it says *held*: a reader asks for life with a lock of its own for a moment."""

READ_BYTES: Final = 1024 * 1024
"""How much of a file is read at a time."""
