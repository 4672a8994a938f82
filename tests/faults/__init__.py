"""Whether a disk that fails costs what was acknowledged, and whether anybody is told a success that is none."""
