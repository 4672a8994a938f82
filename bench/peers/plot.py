"""The plots of `docs/peers.md`, from the figures that were kept: `python -m bench.peers.plot`. Needs matplotlib."""

import json
from itertools import cycle
from typing import Any, Final

import matplotlib.pyplot as plt

from bench.peers.telling import FIGURES, PAGE

_MARKERS: Final = "osD^v<>PX*hp"


def main() -> None:
    """Draw both panels into one picture, as PNG and SVG."""
    plt.switch_backend("Agg")
    plt.rcParams["svg.hashsalt"] = "turnwal"
    kept = json.loads(FIGURES.read_text("utf-8"))
    figure, (appends, loads) = plt.subplots(1, 2, figsize=(13, 5.5))
    for peer, marker in zip(kept["peers"], cycle(_MARKERS), strict=False):
        ours = peer["package"] == "turnwal"
        style: dict[str, Any] = {"marker": marker, "linewidth": 2.5 if ours else 1.0, "markersize": 5}
        sizes = [int(size) for size in peer["append_us"]]
        times = [value / peer["bare_us"][size] for size, value in peer["append_us"].items()]
        appends.plot(sizes, times, label=peer["name"], **style)
        loads.plot(sizes, list(peer["load_ms"].values()), **style)
    appends.set_title("append one message of 1 KB")
    appends.set_ylabel("times a bare write and fdatasync")
    loads.set_title("load the session")
    loads.set_ylabel("milliseconds")
    for axis in (appends, loads):
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel("messages in the session")
        axis.grid(visible=True, which="major", alpha=0.3)
    figure.legend(loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    figure.suptitle(f"turnwal beside what people use today ({kept['where']})", fontsize=10)
    figure.subplots_adjust(bottom=0.27, top=0.87)
    figure.savefig(PAGE.with_suffix(".svg"), metadata={"Date": None})
    figure.savefig(PAGE.with_suffix(".png"), dpi=110)


if __name__ == "__main__":
    main()
