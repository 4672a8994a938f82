"""Children of a warm process, as they are shipped; here under the name that the campaigns use."""

from turnwal.testing.forking import end, fork, wait, wait_for

__all__ = ["end", "fork", "wait", "wait_for"]
