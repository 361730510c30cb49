"""The wheel, installed with all its extras in a separate environment."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def uv() -> str:
    """Return the path of uv: of this environment, where `make` installs it, or of the machine."""
    found = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert found is not None, "uv is missing: run the tests through make"
    return found


def run(*command: str | Path, cwd: Path) -> str:
    environment = {
        name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")
    }
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the commands of an environment with the wheel and all its extras."""
    folder = tmp_path_factory.mktemp("package")
    run(uv(), "build", "--wheel", "--out-dir", folder, cwd=ROOT)
    [wheel] = folder.glob("*.whl")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    run(uv(), "venv", "--python", sys.executable, folder / "env", cwd=folder)
    python = folder / "env" / "bin" / "python"
    run(uv(), "pip", "install", "--python", python, f"{wheel}[{','.join(extras)}]", cwd=folder)
    return folder / "env" / "bin"


def test_wheel_runs_the_demo(installed: Path, tmp_path: Path) -> None:
    result = json.loads(run(installed / "longshore", "demo", "--pods", "20", "-o", "json", cwd=tmp_path))
    assert result["pods"]["bound"] == 20


def test_wheel_has_the_modules_that_the_control_plane_is_built_from(installed: Path, tmp_path: Path) -> None:
    script = (
        "from importlib.resources import files; modules = files('longshore.dev') / 'modules';"
        "print(*sorted(m.name for m in modules.iterdir() if (m / 'go.sum').is_file()))"
    )
    assert run(installed / "python", "-c", script, cwd=tmp_path).split() == [
        "etcd",
        "kubernetes",
        "kwok",
        "prometheus",
    ]


def test_wheel_lists_local_clusters(installed: Path, tmp_path: Path) -> None:
    command = (installed / "longshore", "dev", "list", "-o", "json")
    assert json.loads(run("env", f"LONGSHORE_CACHE={tmp_path}", *command, cwd=tmp_path)) == []


def test_version_is_the_same_everywhere(installed: Path, tmp_path: Path) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert run(installed / "longshore", "--version", cwd=tmp_path).strip() == f"longshore, version {version}"
