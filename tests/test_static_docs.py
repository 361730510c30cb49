"""docs/static.md is correct: its commands print what it shows, on a real cluster, and tables are complete."""

import re
import signal
from pathlib import Path

import pytest
import yaml
from tests.pages import ROOT, Page, Session

from longshore.cli.static import command as static_command
from longshore.serve.metrics.bind_counts import BindCounts

# Dates, times, ages, addresses, the port.
PAGE = Page(
    "static.md",
    varying=[r"\d{4}-\d\d-\d\d", r"\d\d:\d\d:\d\d,\d{3}", r"(\d+m)?\d+s", r"10(\.\d+){3}", r"\d{4,5},"],
)


@pytest.mark.control_plane
def test_step_by_step_on_a_real_cluster(tmp_path: Path) -> None:
    # The port on the page can be in use on this machine.
    session, steps = Session(tmp_path, {"SCHED_PROMETHEUS_PORT": "0"}), PAGE.steps()
    [logged] = PAGE.blocks("text")
    try:
        daemon = PAGE.follow(session, steps, until=lambda command: "--daemon" in command)
        with session.in_background(daemon) as process:
            ready = "".join(logged.splitlines(keepends=True)[:2])
            PAGE.eventually(session.log.read_text, ready)
            assert PAGE.follow(session, steps) == ""
            # There can be other lines in between: `kubectl delete` can also delete the new pod of the same
            # name, before or after it is bound.
            shown = "".join(f"{line}...\n" for line in logged.splitlines(keepends=True))
            message = session.log.read_text()
            assert PAGE.shows(shown, message), message
            process.send_signal(signal.SIGTERM)
            assert process.wait(5) == 0
    finally:
        session.run("longshore dev down || true")


# Tables.


def test_flags_variables_and_defaults_are_those_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    described = {
        frozenset(re.findall(r"`(-[-a-z]+)`", flags)): (variable.strip("`"), default.strip("`"))
        for flags, variable, default, _ in PAGE.rows("flag")
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
    assert {name.strip("`"): set(labels.split(", ")) for name, labels, _ in PAGE.rows("metric")} == known


def test_roles_are_those_of_the_manifest() -> None:
    documents = yaml.safe_load_all((ROOT / "deploy" / "static.yaml").read_text())
    roles = {each["metadata"]["name"] for each in documents if each["kind"] == "ClusterRole"}
    assert {re.findall(r"`(\S+)`", name)[0] for name, _, _ in PAGE.rows("ClusterRole")} == roles
