"""Building the programs, and caching them. The compiler is a fake, see fakes.py."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.dev.fakes import FakeGo
from tests.waiting import eventually

from longshore.dev.build import PROMETHEUS, build, missing, programs_folder
from longshore.errors import UserError

_ALL = ["v3", "kube-apiserver", "kubectl", "kube-controller-manager", "kube-scheduler", "kwok"]
_BUILD = [sys.executable, "-c", "from longshore.dev.build import build; build()"]


def partial_files() -> list[str]:
    return [file.name for file in programs_folder().glob(".*.partial")]


@pytest.fixture
def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    return FakeGo(tmp_path, monkeypatch)


def test_the_first_build_creates_every_program_and_the_stages(
    fake_go: FakeGo, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = build()
    assert fake_go.compiled() == _ALL
    assert (folder / "stages.yaml").read_text().count("kind: Stage") == 3
    assert os.access(folder / "kube-apiserver", os.X_OK)
    progress = capfd.readouterr().err
    assert re.search(r"\[2/7\] kube-apiserver …\n\[2/7\] kube-apiserver \d+ s\n", progress)


def test_a_second_build_compiles_nothing(fake_go: FakeGo, capfd: pytest.CaptureFixture[str]) -> None:
    build()
    fake_go.compiled()
    capfd.readouterr()
    build()
    assert fake_go.compiled() == []
    assert capfd.readouterr().err == ""


def test_only_a_truncated_program_is_built_again(fake_go: FakeGo) -> None:
    folder = build()
    fake_go.compiled()
    os.truncate(folder / "kubectl", 100)
    build()
    assert fake_go.compiled() == ["kubectl"]
    assert (folder / "kubectl").stat().st_size == 1024


def test_only_a_removed_program_is_built_again(fake_go: FakeGo) -> None:
    folder = build()
    fake_go.compiled()
    (folder / "kwok").unlink()
    build()
    assert fake_go.compiled() == ["kwok"]


def test_a_program_overwritten_with_the_same_size_is_built_again(fake_go: FakeGo) -> None:
    folder = build()
    fake_go.compiled()
    (folder / "kwok").write_bytes(b"x" * 1024)
    build()
    assert fake_go.compiled() == ["kwok"]


def test_a_copied_cache_is_used_as_it_is(fake_go: FakeGo) -> None:
    folder = build()
    fake_go.compiled()
    os.utime(folder / "kwok", (1, 1))
    build()
    assert fake_go.compiled() == []


def test_after_a_damaged_manifest_everything_is_built_again(fake_go: FakeGo) -> None:
    folder = build()
    fake_go.compiled()
    (folder / "manifest.json").write_text('{"etcd": {"si')
    build()
    assert fake_go.compiled() == _ALL


def test_a_killed_build_continues_where_it_stopped(fake_go: FakeGo) -> None:
    fake_go.set(slow="2")
    process = subprocess.Popen(_BUILD, stderr=subprocess.PIPE, text=True)
    assert process.stderr
    eventually(partial_files, lambda files: [file for file in files if "kube-apiserver" in file], pause=0.01)
    process.kill()
    process.communicate()
    fake_go.set(slow="")
    assert "etcd" not in missing()
    assert "kube-apiserver" in missing()
    fake_go.compiled()
    build()
    assert fake_go.compiled() == _ALL[1:]
    assert missing() == []


def test_an_interrupted_build_leaves_no_partial_file(fake_go: FakeGo) -> None:
    fake_go.set(slow="5")
    process = subprocess.Popen(_BUILD, stderr=subprocess.PIPE, text=True)
    assert process.stderr
    eventually(partial_files, pause=0.01)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert partial_files() == []


def test_a_concurrent_build_waits_and_reports_it(fake_go: FakeGo) -> None:
    fake_go.set(slow="0.2")
    first = subprocess.Popen(_BUILD, stderr=subprocess.PIPE, text=True)
    assert first.stderr
    first.stderr.readline()
    second = subprocess.run(_BUILD, stderr=subprocess.PIPE, text=True, check=True)
    assert second.stderr == "waiting for another build to finish\n"
    first.communicate()
    assert first.returncode == 0
    assert fake_go.compiled() == _ALL


def test_a_failed_compilation_is_reported_in_one_line_with_the_path_of_the_log(fake_go: FakeGo) -> None:
    output = "go: downloading x v1\n# k8s.io/kubernetes/pkg/foo\npkg/foo/bar.go:12:2: undefined: Baz"
    fake_go.set(error=output)
    with pytest.raises(UserError) as failure:
        build()
    message = str(failure.value)
    assert message.startswith("etcd could not be built: pkg/foo/bar.go:12:2: undefined: Baz; log: ")
    assert "\n" not in message
    assert Path(message.rpartition("log: ")[2]).read_text() == f"{output}\n"
    fake_go.set(error="")
    build()
    assert list(programs_folder().glob("*.log")) == []


def test_a_compiler_that_runs_out_of_disk_space_is_reported(fake_go: FakeGo) -> None:
    # The message of the Go linker.
    fake_go.set(error="/opt/go/pkg/tool/link: flushing $WORK/b001/a.out: write: no space left on device")
    with pytest.raises(
        UserError, match=r"^no space left on the disk while building etcd: free a few GiB"
    ) as failure:
        build()
    assert "\n" not in str(failure.value)
    fake_go.set(error="")
    build()


class _Usage(NamedTuple):
    total: int
    used: int
    free: int


def test_too_little_disk_space_is_reported_before_compiling(
    fake_go: FakeGo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: _Usage(total=100 << 30, used=99 << 30, free=1 << 30))
    with pytest.raises(UserError, match=r"needs 6 GiB of free disk space at .*, but only 1 GiB are left"):
        build()
    assert fake_go.compiled() == []


def test_a_build_continues_after_the_disk_was_full(fake_go: FakeGo) -> None:
    """The cache is a file system of 2 MiB. The third program does not fit until it is made larger."""
    script = f"""
        set -e
        mkdir -p {fake_go.cache} && mount -t tmpfs -o size=2m none {fake_go.cache}
        FAKE_GO_SIZE=900000 "$@" 2>{fake_go.cache.parent}/first && exit 1
        mount -o remount,size=20m {fake_go.cache}
        FAKE_GO_SIZE=900000 "$@" 2>{fake_go.cache.parent}/second
    """
    in_namespace = ["unshare", "--user", "--map-root-user", "--mount"]
    if not shutil.which("unshare") or subprocess.run([*in_namespace, "true"], check=False).returncode:
        pytest.skip("mounting a small file system is not permitted on this machine")
    attempt = """
import sys
import longshore.dev.build as b
from longshore.errors import UserError
b._FIRST_BUILD_SPACE = b._REBUILD_SPACE = 0
try:
    b.build()
except UserError as error:
    sys.exit(f"error: {error}")
"""
    command = [*in_namespace, "sh", "-c", script, "sh", sys.executable, "-c", attempt]
    subprocess.run(command, check=True)
    first = (fake_go.cache.parent / "first").read_text().splitlines()
    assert (
        first[-1] == "error: no space left on the disk while building kubectl: free a few GiB, then try again"
    )
    second = (fake_go.cache.parent / "second").read_text()
    assert "[1/5] kubectl" in second
    assert "error" not in second


def test_other_sources_use_another_folder(
    fake_go: FakeGo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import longshore.dev.build as module

    before = programs_folder()
    changed = tmp_path / "modules"
    shutil.copytree(module._MODULES, changed)
    with (changed / "etcd" / "go.mod").open("a") as file:
        file.write("// changed\n")
    monkeypatch.setattr(module, "_MODULES", changed)
    assert programs_folder() != before


def test_only_linux_is_supported(fake_go: FakeGo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(UserError, match="needs Linux, but this is darwin"):
        build()


def test_prometheus_is_built_separately(fake_go: FakeGo) -> None:
    folder = build(bundle=PROMETHEUS)
    assert fake_go.compiled() == ["prometheus"]
    assert folder.parent == fake_go.cache / "prometheus"
    assert missing(PROMETHEUS) == []
    assert "etcd" in missing()
