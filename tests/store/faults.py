"""A disk that counts what it is asked and fails where a test says."""

from collections.abc import Callable

from turnwal.core.errors import StoreFailed
from turnwal.store.disk import Disk


class PlannedDisk(Disk):
    """Does what the real one does, unless a plan for that call says otherwise."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.written: list[tuple[int, bytes]] = []
        self.plans: dict[str, Callable[[], None]] = {}

    def fail(self, call: str, error: BaseException | None = None) -> None:
        """From now on this call fails."""

        def plan() -> None:
            raise error or StoreFailed("Input/output error", action=call, subject="the disk")

        self.plans[call] = plan

    def mend(self) -> None:
        self.plans.clear()

    def _note(self, call: str) -> None:
        self.calls.append(call)
        if call in self.plans:
            self.plans[call]()

    def write(self, descriptor: int, data: bytes, path: str) -> None:
        self._note("write")
        super().write(descriptor, data, path)

    def write_at(self, descriptor: int, data: bytes, offset: int, path: str) -> None:
        self._note("write_at")
        self.written.append((offset, data))
        super().write_at(descriptor, data, offset, path)

    def sync(self, descriptor: int, path: str) -> None:
        self._note("sync")
        super().sync(descriptor, path)

    def sync_directory(self, path: str) -> None:
        self._note("sync_directory")
        super().sync_directory(path)

    def link(self, path: str, name: str) -> bool:
        self._note("link")
        return super().link(path, name)

    def create(self, path: str) -> int | None:
        self._note("create")
        return super().create(path)
