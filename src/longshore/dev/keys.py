"""The files of a key: its public side and its private side."""

from pathlib import Path
from typing import NamedTuple


class Pair(NamedTuple):
    """A certificate, or a public key, and the private key that belongs to it."""

    public: Path
    private: Path
