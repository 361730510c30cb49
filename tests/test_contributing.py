"""CONTRIBUTING.md names files and make targets: these tests fail when one of them moves."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()


def test_the_files_that_it_names_exist() -> None:
    named = re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|proto))`", TEXT)
    assert named
    missing = [
        name for name in named if not any((ROOT / base / name).exists() for base in ("src/longshore", ""))
    ]
    assert missing == []


def test_the_make_targets_that_it_names_exist() -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    named = re.findall(r"make ([a-z-]+)", TEXT)
    assert named
    assert set(named) <= set(targets)
