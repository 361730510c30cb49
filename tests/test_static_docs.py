"""docs/static.md is true: its commands do what it shows, on a real cluster, and its tables are complete."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import yaml

from longshore.cli.static import command as static_command
from longshore.dev.build import build
from longshore.serve.bindcounts import BindCounts

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "static.md").read_text()
# What differs from run to run: dates, times, ages, addresses, the port.
VARYING = [r"\d{4}-\d\d-\d\d", r"\d\d:\d\d:\d\d,\d{3}", r"(\d+m)?\d+s", r"10(\.\d+){3}", r"\d{4,5},"]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)


def steps() -> Iterator[tuple[str, str]]:
    """Every command of the page, with the output that is shown for it."""
    for block in blocks("console"):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = step.partition("\n")
            yield command, output


def pattern(shown: str) -> str:
    """What matches the lines, however wide their columns are."""

    def word(text: str) -> str:
        return next((each for each in VARYING if re.fullmatch(each, text)), re.escape(text))

    return "".join(rf"\s*{r' +'.join(map(word, line.split()))} *\n" for line in shown.splitlines())


class Session:
    """A shell whose exported variables live on from one command to the next, and a window beside it."""

    def __init__(self, folder: Path) -> None:
        cache, programs = folder / "cache", folder / "bin"
        cache.mkdir()
        (cache / "control-plane").symlink_to(build().parent)
        programs.mkdir()
        (programs / "kubectl").symlink_to(build() / "kubectl")
        self._exported = folder / "exported"
        self._exported.touch()
        self.log = folder / "daemon.log"
        self._environment = {
            "PATH": f"{programs}:{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(folder),
            "LONGSHORE_CACHE": str(cache),
            # The one of the page may be taken on this machine.
            "SCHED_PROMETHEUS_PORT": "0",
        }

    def run(self, command: str) -> str:
        """What it prints, warnings first."""
        script = f". {self._exported}\n{command}\nexport -p > {self._exported}"
        done = subprocess.run(
            ["bash", "-ec", script],
            cwd=ROOT,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stderr + done.stdout

    @contextmanager
    def beside(self, command: str) -> Iterator[subprocess.Popen[bytes]]:
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                ["bash", "-ec", f". {self._exported}\nexec {command}"],
                cwd=ROOT,
                env=self._environment,
                stderr=log,
            )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def eventually(check: Callable[[], str], shown: str) -> None:
    """Wait until the output is what is shown."""
    deadline = time.monotonic() + 30
    while not re.fullmatch(pattern(shown), output := check()):
        assert time.monotonic() < deadline, f"shown:\n{shown}\nfound:\n{output}"
        time.sleep(0.2)


def follow(session: Session, pages: Iterator[tuple[str, str]]) -> str:
    """Run commands as they stand until one that goes on for ever, which is returned."""
    for command, shown in pages:
        if "--daemon" in command:
            return command
        if command.startswith("kubectl get"):
            eventually(partial(session.run, command), shown)
        else:
            output = session.run(command)
            assert not shown or re.fullmatch(pattern(shown), output), f"{command}\n{output}"
    return ""


@pytest.mark.control_plane
def test_step_by_step_on_a_real_cluster(tmp_path: Path) -> None:
    session, page = Session(tmp_path), steps()
    [logged] = blocks("text")
    try:
        daemon = follow(session, page)
        with session.beside(daemon) as process:
            ready = "".join(logged.splitlines(keepends=True)[:2])
            eventually(session.log.read_text, ready)
            assert follow(session, page) == ""
            # The page has ended the cluster by now.
            told = session.log.read_text().splitlines(keepends=True)[: logged.count("\n")]
            assert re.fullmatch(pattern(logged), "".join(told))
            process.send_signal(signal.SIGTERM)
            assert process.wait(5) == 0
    finally:
        session.run("longshore dev down || true")


# Tables.


def rows(heading: str) -> list[list[str]]:
    """The table that has this heading in its first column."""
    [table] = [
        table
        for table in re.findall(r"(?:^\|.*\n)+", TEXT, flags=re.MULTILINE)
        if table.startswith(f"| {heading} |")
    ]
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines()[2:]]


def test_flags_variables_and_defaults_are_those_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    described = {
        frozenset(re.findall(r"`(-[-a-z]+)`", flags)): (variable.strip("`"), default.strip("`"))
        for flags, variable, default, _ in rows("flag")
    }
    known = {
        frozenset(parameter.opts + parameter.secondary_opts): parameter for parameter in static_command.params
    }
    assert described.keys() == known.keys()
    for variable, _ in described.values():
        monkeypatch.delenv(variable, raising=False)
    with static_command.make_context("static", []) as context:
        defaults = context.params
    for flags, (variable, default) in described.items():
        parameter = known[flags]
        if parameter.envvar is not None:
            assert variable == parameter.envvar
        found = defaults[str(parameter.name)]
        if default in ("on", "off"):
            assert found is (default == "on")
        elif found is not None and parameter.envvar is not None:
            assert str(found).removesuffix(".0") == default


def test_metrics_and_their_labels_are_those_that_are_counted() -> None:
    counts = BindCounts("test")
    counts.bound(namespace="default", pod="one", node="n1")
    counts.refused(namespace="default", pod="two", node="n1", http_status=409, reason="Conflict")
    known = {
        sample.name: set(sample.labels)
        for family in counts.registry.collect()
        for sample in family.samples
        if re.fullmatch("schedule_.*_total", sample.name)
    }
    assert {name.strip("`"): set(labels.split(", ")) for name, labels, _ in rows("metric")} == known


def test_roles_are_those_of_the_manifest() -> None:
    documents = yaml.safe_load_all((ROOT / "deploy" / "static.yaml").read_text())
    roles = {each["metadata"]["name"] for each in documents if each["kind"] == "ClusterRole"}
    assert {re.findall(r"`(\S+)`", name)[0] for name, _, _ in rows("ClusterRole")} == roles
