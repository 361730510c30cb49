"""docs/podsets.md is correct: its commands print what it shows on a real cluster, and tables are complete."""

import re
import signal
import time
from pathlib import Path

import msgspec
import pytest
import yaml
from tests.pages import ROOT, Page, Session

from longshore.api import ScheduleTrigger
from longshore.cli.planner import command as planner_command
from longshore.cli.run import command as run_command
from longshore.engine.cycle.reporting import REASON_UNSCHEDULABLE
from longshore.podset import texts
from longshore.podset.arguments import PodSetPlannerArgs

NODE = r"kind-worker[23]?"
POD = r"hello-(client|server)-\w+-\w+"
ENTRY = rf'\{{"node":"{NODE}","pod":"{POD}"\}}'
# Names, nodes, plans, times, ages, addresses, gaps.
PAGE = Page(
    "podsets.md",
    varying=[
        POD,
        NODE,
        rf"\[{ENTRY},{ENTRY}\]",
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
        r"(\d+m)?\d+s",
        r"10(\.\d+){3}",
        r"0(\.\d+)?",
    ],
)
QUIET_SECONDS = 12


@pytest.mark.control_plane
def test_step_by_step_on_a_real_cluster(tmp_path: Path) -> None:
    """Run the commands of the page, with a shorter quiet time than two minutes."""
    session, steps = Session(tmp_path), PAGE.steps()
    kubectl = "longshore dev kubectl --"
    times: dict[str, float] = {}

    def after(command: str) -> None:
        times[command] = time.time()
        if command.endswith("examples/wt-scheduletrigger.yaml"):
            label = f"planner.ciena.io/quiet-time={QUIET_SECONDS}s"
            session.run(f"{kubectl} label --overwrite st customtrigger {label}")
        elif " wait " in command:
            # The set is not released earlier.
            stamps = "{.items[*].metadata.creationTimestamp}"
            created = session.run(f"{kubectl} get pods -o jsonpath={stamps}").split()
            last = time.mktime(time.strptime(max(created), "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
            assert QUIET_SECONDS <= times[command] - last < QUIET_SECONDS + 10

    try:
        scheduler = PAGE.follow(session, steps, until=lambda command: command == "longshore run")
        # The port on the page can be in use on this machine.
        with session.in_background(f"{scheduler} --metrics-port 0 --bind-address 127.0.0.1") as process:
            assert PAGE.follow(session, steps, after=after) == ""
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
    finally:
        session.run("longshore dev down || true")


# Tables.


def test_arguments_are_those_of_the_plugin_and_flags_those_of_the_command() -> None:
    rows = PAGE.rows("argument of PodSetPlanner")
    arguments = {name for cell, _, _ in rows for name in re.findall(r"`(\w+)`", cell)}
    assert arguments == {field.encode_name for field in msgspec.structs.fields(PodSetPlannerArgs)}
    flags = {flag for _, cell, _ in rows for flag in re.findall(r"`(--[a-z-]+)`", cell)}
    assert flags == {"--planner-namespace", "--planner-fallback", "--planner-address"}
    assert flags <= {option for parameter in run_command.params for option in parameter.opts}


def test_every_flag_on_the_page_exists() -> None:
    known = {
        option
        for command in (run_command, planner_command)
        for parameter in command.params
        for option in parameter.opts
    }
    named = set(re.findall(r"`(--(?:planner|tls|client)-[a-z-]+)`", PAGE.text)) | {"--paralleism"}
    assert named <= known


def test_the_listed_reasons_are_those_of_pods() -> None:
    message = {value for name, value in vars(texts).items() if name.startswith("REASON_")} | {
        REASON_UNSCHEDULABLE
    }
    assert {reason.strip("`") for reason, _ in PAGE.rows("reason")} == message


def test_the_trigger_on_the_page_is_read_as_described() -> None:
    [shown] = [block for block in PAGE.blocks("yaml") if "ScheduleTrigger" in block]
    trigger = msgspec.convert(yaml.safe_load(shown), ScheduleTrigger)
    assert (trigger.spec.all_or_nothing, trigger.spec.objective) == (True, "Pack")
    assert trigger.spec.budget_seconds == 2.0
    fields = {field.encode_name for field in msgspec.structs.fields(type(trigger.spec))}
    described = {name for cell, *_ in PAGE.rows("what") for name in re.findall(r"^`(\w+)`$", cell)}
    assert described == fields


def test_manifests_and_examples_on_the_page_exist() -> None:
    named = set(re.findall(r"\b((?:deploy|examples)/[\w./-]+\w)", PAGE.text))
    assert named
    for path in named:
        assert (ROOT / path).exists(), path
