from pathlib import Path

import pytest

from tests.cli.worlds import World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """An empty store, which the command line finds by itself."""
    root = tmp_path / "sessions"
    monkeypatch.setenv("TURNWAL_STORE", str(root))
    monkeypatch.chdir(tmp_path)
    return World(root)
