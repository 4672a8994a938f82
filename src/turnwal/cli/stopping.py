"""Ctrl-C in a verb that does one session after another: the first one ends it between two, the second one at once."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stoppable() -> Iterator[Callable[[], bool]]:
    """A function that says whether Ctrl-C was pressed in the block; a second one raises `KeyboardInterrupt`.

    Where nobody would hear of it, or whoever started the process had it ignore Ctrl-C, nothing is changed.
    """
    stopped = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopped
        del number, frame
        if stopped:
            raise KeyboardInterrupt
        stopped = True

    default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not default or threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    signal.signal(signal.SIGINT, stop)
    try:
        yield lambda: stopped
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
