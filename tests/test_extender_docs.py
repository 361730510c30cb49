"""docs/extender.md is correct: its commands print what it shows. Processes replace the containers."""

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

import click
import msgspec
import pytest
import yaml
from tests.deploy.extender_manifests import ACCOUNT, FOLDER, SCHEDULER, Manifest, running
from tests.pages import ROOT, Page, Session

from longshore.agents import annotations
from longshore.agents.load import REASON_NO_MEASUREMENTS, Missing
from longshore.api import parse_duration
from longshore.cli.extender import command as extender_command
from longshore.config import load_measurements
from longshore.config.measurements import MeasurementSettings, ProviderName
from longshore.config.setup import set_up
from longshore.dev.build import build
from longshore.engine import Engine
from longshore.serve.extender.agent_choice import choose, verbs

# Ages, addresses and times.
PAGE = Page(
    "extender.md",
    varying=[
        r"(\d+m)?\d+s",
        r"10(\.\d+){3}",
        r'{"verb":"predicates/safe-overload","pod":"default/test-pod",.*Z"}',
    ],
)
MEASUREMENTS = Page("measurements.md", varying=())


def account(session: Session, folder: Path) -> Path:
    """Write a kubeconfig for the service account that the page has created."""
    shown = json.loads(session.run("kubectl config view --raw -o json"))
    token = session.run(f"kubectl create token {ACCOUNT} -n kube-system").strip()
    [cluster] = shown["clusters"]
    authority = cluster["cluster"].get("certificate-authority")
    if authority is not None:
        base = Path(session.run("echo $KUBECONFIG").strip()).parent
        cluster["cluster"]["certificate-authority"] = str(base / authority)
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [cluster],
        "users": [{"name": ACCOUNT, "user": {"token": token}}],
        "contexts": [{"name": "it", "context": {"cluster": cluster["name"], "user": ACCOUNT}}],
        "current-context": "it",
    }
    file = folder / "account.kubeconfig"
    file.write_text(yaml.safe_dump(document))
    return file


@contextmanager
def annotator(session: Session) -> Iterator[None]:
    """Change a node every second, as an annotator does, so that kube-scheduler tries a refused pod again."""
    kubectl = [str(build() / "kubectl"), "--kubeconfig", session.run("echo $KUBECONFIG").strip()]
    stopped = threading.Event()

    def pass_by() -> None:
        number = 0
        while not stopped.wait(1.0):
            number += 1
            touch = ["annotate", "--overwrite", "node", "node-0", f"example.com/pass={number}"]
            subprocess.run([*kubectl, *touch], check=False, capture_output=True)

    thread = threading.Thread(target=pass_by)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


@pytest.mark.control_plane
def test_step_by_step_on_a_real_cluster(tmp_path: Path) -> None:
    session, steps = Session(tmp_path), PAGE.steps()
    try:
        deployed = PAGE.follow(session, steps, until=lambda command: " annotate " in command)
        assert deployed
        manifest = Manifest.read(FOLDER / "extender.safe.yaml")
        with running(manifest, account(session, tmp_path), tmp_path) as pod, annotator(session):
            session.stand_in(pod.logs)
            session.run(deployed)
            down = PAGE.follow(session, steps, until=lambda command: "dev down" in command)
            for container in pod.logs:
                assert "forbidden" not in pod.log(container).lower(), container
            assert 'bound pod to node" pod="default/test-pod" node="node-1"' in pod.log(SCHEDULER)
        session.run(down)
        assert PAGE.follow(session, steps) == ""
    finally:
        session.run("longshore dev down || true")


# Tables.


def test_flags_and_their_variables_are_those_of_the_command() -> None:
    described = {
        flag: (flags, variable)
        for flags, variable, *_ in PAGE.rows("flag")
        for flag in re.findall(r"`(--[a-z-]+)`", flags)
    }
    assert described.keys() == {opt for parameter in extender_command.params for opt in parameter.opts}
    said = extender_command.get_help(click.Context(extender_command))
    for variable in ("HTTP_PORT", "LOG_LEVEL"):
        assert any(f"`{variable}`" == shown for _, shown in described.values())
        assert f"${variable}" in said


def test_agents_and_their_verbs_are_those_that_are_installed() -> None:
    described = {}
    for agent, _, shown in PAGE.rows("agent"):
        filters, _, priorities = shown.rpartition(";")
        [(text, page)] = re.findall(r"\[(.*?)\]\(agents/(.*?)\.md\)", agent)
        assert text == page
        described[text] = (re.findall(r"`(.*?)`", filters), re.findall(r"`(.*?)`", priorities))
    known = {}
    for chosen in choose(["all"]):
        asked = [verbs(plugin) for plugin in chosen.plugins]
        known[chosen.name] = tuple(
            [found[kind] for found in asked if kind in found] for kind in ("predicates", "priorities")
        )
    assert described == known


def test_keys_of_measurements_and_their_defaults_are_those_that_are_read() -> None:
    """The other page has tables of all keys except `provider`."""
    rows = re.findall(r"^\| (`\w+`.*?) \| `?(.*?)`? \|", MEASUREMENTS.text, flags=re.MULTILINE)
    described = {name: default for keys, default in rows for name in re.findall(r"`(\w+)`", keys)}
    defaults = {_camel(field.name): field.default for field in msgspec.structs.fields(MeasurementSettings)}
    for name in defaults.keys() - {"provider"}:
        assert name in described
    for name in ("interval", "maxAge", "settle", "window"):
        assert parse_duration(described[name]) == defaults[name]
    assert described["nodeLabel"] == defaults["nodeLabel"]
    assert described["nodeFrom"] == defaults["nodeFrom"]


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def test_all_providers_are_listed() -> None:
    shown = [re.findall(r"`([\w-]+)`", row[0])[0] for row in MEASUREMENTS.rows("provider")]
    assert set(shown) == set(get_args(ProviderName))


def test_the_file_of_measurements_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "measurements.yaml"
    file.write_text(PAGE.blocks("yaml")[0])
    assert load_measurements(str(file)).node_from == "internalIP"


def test_the_listed_annotations_are_those_that_agents_read() -> None:
    shown = {
        name for row in PAGE.rows("annotation of a node") for name in re.findall(r"`([\w./-]+)`", row[0])
    }
    read = {
        *annotations.MEAN_FREE.values(),
        *annotations.STD_FREE.values(),
        *(names[0] for names in annotations.FORECAST_FREE.values()),
        annotations.MEASURED_AT,
        annotations.ALLOCATED_AT,
        annotations.CONGESTION_FACTOR,
        *annotations.REQUESTED.values(),
    }
    assert shown == read


def test_policies_are_those_of_the_agents() -> None:
    assert [re.findall(r"`(\w+)`", row[0])[0] for row in PAGE.rows("`missing`")] == [*get_args(Missing)]
    assert any(f'"{REASON_NO_MEASUREMENTS}"' in row[1] for row in PAGE.rows("`missing`"))


def test_the_configuration_of_longshore_run_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(PAGE.blocks("yaml")[1])
    setup = set_up(str(file))
    assert setup.warnings == ()
    [profile] = setup.configuration.profiles
    assert ("SafeOverload", 5) in [(each.name, each.weight) for each in profile.points["score"]]
    assert "SafeOverload" in [each.name for each in profile.points["filter"]]
    # The constructor checks the arguments.
    assert Engine(setup.configuration, plugins=setup.plugins).chooser("longshore")


def test_links_lead_to_existing_files() -> None:
    for target in re.findall(r"\]\(([^)#]+)", PAGE.text):
        assert (ROOT / "docs" / target).exists(), target
