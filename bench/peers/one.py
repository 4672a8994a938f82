"""One peer at work: `python -m bench.peers.one MODULE STORE WHAT FOLDER`, in the environment of that peer."""

import importlib
import json
import sys
from importlib.metadata import version
from pathlib import Path

from bench.peers import work

GROWN = 300
"""Messages of the session whose bytes are counted."""


def main(module: str, store: str, what: str, folder: Path, *more: str) -> None:
    """Do one thing and print what came of it, as one line of JSON."""
    peer: work.Peer = importlib.import_module(f"bench.peers.{module}").PEERS[store]()
    if what == "measure":
        said = {"name": peer.name, "durability": peer.durability, "package": peer.package}
        said["version"] = version(peer.package)
        print(json.dumps(said | work.measured(peer, folder)))
    elif what == "bytes":
        print(json.dumps(work.bytes_per_message(peer, folder, GROWN)))
    elif what == "append":
        folder.mkdir(parents=True)
        peer.fill(folder, 1)
        peer.append(folder, int(more[0]))
    elif what == "play":
        peer.play(folder)
    else:
        told = peer.resume(folder)
        print(json.dumps({"told": told, "effects": work.effects(folder)}))


if __name__ == "__main__":
    module, store, what, folder, *more = sys.argv[1:]
    main(module, store, what, Path(folder), *more)
