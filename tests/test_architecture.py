"""docs/architecture.md names files, packages and layers: these tests fail when one of them moves."""

import re
import tomllib
from pathlib import Path

import pytest

_ROOT = Path(__file__).parent.parent
_SOURCE = _ROOT / "src" / "longshore"
_PAGE = (_ROOT / "docs" / "architecture.md").read_text()

# A path in code style that ends with a file name or a slash: `engine/engine.py`, `tests/plugins/`.
_PATHS = sorted(set(re.findall(r"`((?:[\w.-]+/)*[\w.-]+\.(?:py|md|toml|proto|yaml)|(?:[\w.-]+/)+)`", _PAGE)))


@pytest.mark.parametrize("path", _PATHS)
def test_a_file_that_the_page_names_exists(path: str) -> None:
    assert (_SOURCE / path).exists() or (_ROOT / path).exists()


def test_the_table_has_a_row_for_every_package() -> None:
    packages = {folder.name for folder in _SOURCE.iterdir() if (folder / "__init__.py").exists()}
    table = set(re.findall(r"^\| `([a-z_`, ]+)` \|", _PAGE, re.MULTILINE))
    assert {name for row in table for name in re.findall(r"[a-z_]+", row)} == packages


def test_the_packages_stand_in_the_order_of_the_import_contract() -> None:
    settings = tomllib.loads((_ROOT / "pyproject.toml").read_text())
    [layers] = [
        each["layers"] for each in settings["tool"]["importlinter"]["contracts"] if each["type"] == "layers"
    ]
    contract = [
        set(layer.split(" | ")) & {folder.name for folder in _SOURCE.iterdir() if folder.is_dir()}
        for layer in layers
    ]
    rows = re.findall(r"^\| `([a-z_`, ]+)` \|", _PAGE, re.MULTILINE)
    assert [set(re.findall(r"[a-z_]+", row)) for row in rows] == [layer for layer in contract if layer]
