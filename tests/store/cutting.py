"""A proxy before a server that is slow, or cuts the connection after a number of bytes in one direction."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

Direction = Literal["up", "down"]


class Proxy:
    """Forwards between a port and the server's socket, until it is told to cut."""

    def __init__(self, server: Path) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._left: int | None = None
        self._direction: Direction = "up"
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self.passed = {"up": 0, "down": 0}
        self.delay_s = 0.0
        """How long what was said takes to arrive, in each direction."""
        self._closing = threading.Event()
        self._start(self._accept)

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    def cut_after(self, count: int | None, direction: Direction = "up") -> None:
        """Let this many bytes more pass in a direction, then end every connection; None lets everything pass."""
        self._direction = direction
        self.passed = {"up": 0, "down": 0}
        self._left = count

    def close(self) -> None:
        self._closing.set()
        self._end(self._listener, *self._sockets)
        for thread in self._threads:
            thread.join()
        for each in (self._listener, *self._sockets):
            each.close()

    def _start(self, act: object, *arguments: object) -> None:
        assert callable(act)
        thread = threading.Thread(target=act, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._server))
                self._sockets += [client, server]
                self._start(self._forward, client, server, "up")
                self._start(self._forward, server, client, "down")

    def _forward(self, source: socket.socket, sink: socket.socket, direction: Direction) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._closing.wait(self.delay_s)
                left = self._left
                if left is not None and direction == self._direction:
                    self._left = left - min(left, len(data))
                    data = data[:left]
                self.passed[direction] += len(data)  # before whoever gets it looks
                sink.sendall(data)
                if self._left == 0:
                    break
        self._end(source, sink)

    @staticmethod
    def _end(*sockets: socket.socket) -> None:
        for each in sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxy_before(server: Path) -> Iterator[Proxy]:
    proxy = Proxy(server)
    try:
        yield proxy
    finally:
        proxy.close()
