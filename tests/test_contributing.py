"""CONTRIBUTING.md describes the layers that the import contract checks."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()


def test_the_table_of_layers_is_the_import_contract() -> None:
    [table] = [part for part in re.findall(r"(?:^\|.*\n)+", TEXT, flags=re.MULTILINE) if "| layer |" in part]
    described = [re.findall(r"`(\w+)`", row.split("|")[1]) for row in table.splitlines()[2:]]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [layers] = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    assert described == [layer.split(" | ") for layer in layers if layer != "__main__"]


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
