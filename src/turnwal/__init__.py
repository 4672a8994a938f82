"""The write-ahead log of agent turns."""

__version__ = "0.1.0"
