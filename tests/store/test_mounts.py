"""Which mounted file systems are network file systems."""

from pathlib import Path

import pytest

from turnwal.store.mounts import network_type

MOUNTS = rb"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
23 22 0:21 / /proc rw - proc proc rw
30 22 0:40 / /mnt/nfs rw shared:7 master:2 - nfs4 server:/export rw
31 30 254:1 / /mnt/nfs/local rw - xfs /dev/vdb rw
32 22 0:41 / /mnt/with\040space rw - cifs //server/share rw
33 22 0:42 / /mnt/ssh rw - fuse.sshfs user@host: rw
34 22 0:43 / /mnt/ntfs rw - fuse.ntfs-3g /dev/sdb rw
35 22 0:44 / /mnt/over rw - tmpfs tmpfs rw
36 22 0:45 / /mnt/over rw - 9p host rw
short line
"""


@pytest.fixture
def mounts(tmp_path: Path) -> str:
    (tmp_path / "mountinfo").write_bytes(MOUNTS)
    return str(tmp_path / "mountinfo")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", None),
        ("/mnt", None),
        ("/mnt/nfs", "nfs4"),
        ("/mnt/nfs/deep/er", "nfs4"),
        ("/mnt/nfs/local/x", None),
        ("/mnt/nfsx", None),
        ("/mnt/with space/x", "cifs"),
        ("/mnt/ssh", "fuse.sshfs"),
        ("/mnt/ntfs", None),
        ("/mnt/over", "9p"),
    ],
)
def test_the_innermost_mount_decides(path: str, kind: str | None, mounts: str) -> None:
    assert network_type(path, mounts) == kind


def test_what_cannot_be_found_out_passes(tmp_path: Path) -> None:
    assert network_type("/mnt/nfs", str(tmp_path / "absent")) is None
    assert network_type(str(tmp_path)) is None
