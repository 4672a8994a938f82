"""Ctrl-C while a session is being claimed leaves it free: this process may claim it again."""

from pathlib import Path

import pytest

from turnwal.store.disk import Disk
from turnwal.store.file import FileStore


class InterruptedDisk(Disk):
    """A disk whose owner file is written when Ctrl-C comes."""

    def replace(self, path: str, data: bytes) -> None:
        super().replace(path, data)
        raise KeyboardInterrupt


def test_an_interrupt_while_the_owner_describes_itself_leaves_the_session_free(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        FileStore(tmp_path, disk=InterruptedDisk()).claim("s")

    FileStore(tmp_path).claim("s").release()
