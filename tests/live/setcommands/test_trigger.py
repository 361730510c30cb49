"""`longshore trigger` on the real control plane; the pods are bound by the tests themselves."""

import os
import pty
import re
import subprocess

import pytest
from tests.live.setcommands.commands import Stage, as_json, the_error, trigger
from tests.waiting import eventually

TRIGGERS = ("planner.ciena.io", "scheduletriggers", "list patch")


def test_a_set_is_released_by_the_name_of_its_trigger(stage: Stage) -> None:
    stage.create(trigger())
    done = stage.run("trigger", "go")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"trigger {stage.namespace}/go of set batch is now Schedule; it was Planning\n"
    assert stage.state() == "Schedule"


def test_a_set_is_released_by_its_own_name(stage: Stage) -> None:
    stage.create(trigger(), trigger("other", "letters"))
    done = stage.run("trigger", f"{stage.namespace}/batch", namespace=None)
    assert done.stdout.startswith(f"trigger {stage.namespace}/go of set batch is now Schedule")
    assert (stage.state("go"), stage.state("other")) == ("Schedule", "Planning")


def test_a_set_is_held_again(stage: Stage) -> None:
    stage.create(trigger(state="Schedule"))
    content = as_json(stage.run("trigger", "go", "--state", "Planning", "-o", "json"))
    assert content == {
        "namespace": stage.namespace,
        "name": "go",
        "podSet": "batch",
        "state": "Planning",
        "before": "Schedule",
        "warnings": [],
        "changed": True,
        "pods": None,
    }
    assert stage.state() == "Planning"


def test_a_trigger_that_is_in_the_state_already_is_not_written(stage: Stage) -> None:
    stage.create(trigger(state="Schedule"))
    before = stage.versions()
    done = stage.run("trigger", "go")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"trigger {stage.namespace}/go of set batch was already Schedule\n"
    assert stage.versions() == before


def test_a_trigger_that_does_not_exist(stage: Stage) -> None:
    stage.create(trigger(), trigger("lone", ""))
    error = the_error(stage.run("trigger", "gone"))
    assert f"trigger gone does not exist in namespace {stage.namespace}: " in error
    assert "it has go (set batch), lone\n" in error


def test_a_namespace_without_any_trigger(stage: Stage) -> None:
    assert "it has no triggers; -n chooses another namespace" in the_error(stage.run("trigger", "go"))


def test_a_set_with_two_triggers_wants_one_of_them_named(stage: Stage) -> None:
    stage.create(trigger("a"), trigger("b"))
    error = the_error(stage.run("trigger", "batch"))
    assert "has the triggers a, b: give the name of one; only a counts" in error
    assert (stage.state("a"), stage.state("b")) == ("Planning", "Planning")


def test_the_second_trigger_of_a_set_is_set_with_a_warning(stage: Stage) -> None:
    stage.create(trigger("a"), trigger("b"))
    done = stage.run("trigger", "b")
    assert done.returncode == 0
    assert done.stderr == (
        f"warning: {stage.namespace}/b: it is ignored: of the triggers of set batch, only the first by name "
        "counts, a\n"
    )
    assert (stage.state("a"), stage.state("b")) == ("Planning", "Schedule")


# Watching.


def test_a_watch_into_a_pipe_prints_each_change_and_ends_with_the_last_pod(stage: Stage) -> None:
    stage.create(trigger(), stage.member("one"), stage.member("two"))
    with subprocess.Popen(
        stage.command("trigger", "go", "--watch"), stdout=subprocess.PIPE, text=True, env=stage.environment()
    ) as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline().endswith("is now Schedule; it was Planning\n")
        assert watching.stdout.readline() == "2 held, 0 bound\n"
        stage.bind({"one": stage.nodes[0]})
        assert watching.stdout.readline() == "1 held, 1 bound\n"
        stage.bind({"two": stage.nodes[1]})
        assert watching.stdout.read() == "0 held, 2 bound\n"
    assert watching.returncode == 0


def test_a_watch_in_a_terminal_changes_in_place(stage: Stage) -> None:
    stage.create(trigger(), stage.member("one"))
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        stage.command("trigger", "go", "--watch"),
        stdout=theirs,
        env=stage.environment() | {"TERM": "xterm-256color"},
    ) as watching:
        os.close(theirs)
        shown = b""
        while b"1 held, 0 bound" not in shown:
            shown += os.read(ours, 4096)
        stage.bind({"one": stage.nodes[0]})
        while b"0 held, 1 bound" not in shown:
            shown += os.read(ours, 4096)
    os.close(ours)
    assert watching.returncode == 0
    assert b"\x1b[2K" in shown  # the line before is wiped


def test_a_watch_as_json_tells_the_end_alone(stage: Stage) -> None:
    stage.create(trigger(), stage.member("one"))
    stage.bind({"one": stage.nodes[0]})
    content = as_json(stage.run("trigger", "go", "--watch", "-o", "json"))
    assert (content["changed"], content["pods"]) == (True, {"held": 0, "bound": 1})


def test_a_watch_that_takes_too_long_names_the_pods_and_the_reason(stage: Stage) -> None:
    stage.create(trigger(), stage.member("one"), stage.member("two"))
    stage.bind({"one": stage.nodes[0]})
    condition = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available."}
    stage.set_status("pod", "two", {"conditions": [condition]})
    done = stage.run("trigger", "go", "--watch", "--timeout", "600ms")
    assert done.returncode == 1
    assert done.stdout.endswith("1 held, 1 bound\n")
    assert done.stderr == (
        f"error: timed out after 600ms: pods of set {stage.namespace}/batch still wait: "
        "two (0/3 nodes are available.)\n"
    )
    assert stage.state() == "Schedule"


def test_a_watch_ends_when_the_set_is_held_again(stage: Stage) -> None:
    stage.create(trigger(), stage.member("one"))
    with subprocess.Popen(
        stage.command("trigger", "go", "--watch"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=stage.environment(),
    ) as watching:
        eventually(stage.state, lambda found: found == "Schedule")
        stage.kubectl("patch", "st", "go", "--type=merge", "-p", '{"spec": {"state": "Planning"}}')
        assert watching.stderr is not None
        error = watching.stderr.read()
    assert watching.returncode == 1
    assert error == f"error: trigger {stage.namespace}/go was set back to Planning: pods still held: 1\n"


def test_pods_that_have_ended_or_belong_to_another_set_are_not_waited_for(stage: Stage) -> None:
    stage.create(trigger(), stage.member("ended"), stage.member("foreign", "letters"))
    stage.set_status("pod", "ended", {"phase": "Failed"})
    done = stage.run("trigger", "go", "--watch", "--timeout", "5s")
    assert (done.returncode, done.stdout.splitlines()[1:]) == (0, ["the set has no pods"])


def test_a_trigger_without_a_set_cannot_be_watched(stage: Stage) -> None:
    stage.create(trigger("lone", "", state="Schedule"))
    done = stage.run("trigger", "lone", "--watch")
    assert done.returncode == 1
    assert f"error: trigger {stage.namespace}/lone has no set" in done.stderr


# The table.


def test_the_table_of_triggers(stage: Stage) -> None:
    stage.create(trigger("go", quiet="2m"), trigger("later"), trigger("new", "letters", state="Schedule"))
    stage.set_status(
        "st", "go", {"held": 3, "bound": 2, "fireAt": "2020-01-01T00:02:00Z", "observedGeneration": 1}
    )
    done = stage.run("trigger", "--list")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split("  ") for line in _squeezed(done.stdout)] == [
        ["trigger", "set", "state", "held", "bound", "fires at", "notes"],
        ["go", "batch", "Planning", "3", "2", "2020-01-01T00:02:00Z"],
        ["later", "batch", "Planning", _ignored("batch", "go")],
        ["new", "letters", "Schedule"],
    ]


def test_the_table_of_all_namespaces_names_them(stage: Stage) -> None:
    stage.create(trigger())
    done = stage.run("trigger", "--list", "-A", namespace=None)
    lines = _squeezed(done.stdout)
    assert lines[0].startswith("namespace  trigger  set  state")
    assert f"{stage.namespace}  go  batch  Planning" in lines


def test_the_triggers_as_json(stage: Stage) -> None:
    stage.create(trigger(quiet="soon"))
    invalid = {"type": "QuietTimeValid", "status": "False", "message": "'soon' is no duration"}
    stage.set_status("st", "go", {"held": 1, "bound": 0, "observedGeneration": 1, "conditions": [invalid]})
    assert as_json(stage.run("trigger", "--list", "-o", "json")) == {
        "triggers": [
            {
                "namespace": stage.namespace,
                "name": "go",
                "podSet": "batch",
                "state": "Planning",
                "quietTime": "soon",
                "held": 1,
                "bound": 0,
                "fireAt": None,
                "notes": ["'soon' is no duration"],
            }
        ]
    }


def test_a_table_of_nothing(stage: Stage) -> None:
    done = stage.run("trigger", "--list")
    assert (done.returncode, done.stdout) == (0, "no triggers found\n")


# Rights.


@pytest.mark.parametrize(
    ("rules", "arguments", "missing"),
    [
        ((), ("go",), "list scheduletriggers.planner.ciena.io in namespace"),
        ((), ("--list",), "list scheduletriggers.planner.ciena.io in namespace"),
        ((("planner.ciena.io", "scheduletriggers", "list"),), ("go",), "patch scheduletriggers"),
    ],
)
def test_a_right_that_is_missing_is_named(
    stage: Stage, rules: tuple[tuple[str, str, str], ...], arguments: tuple[str, ...], missing: str
) -> None:
    stage.create(trigger())
    error = the_error(stage.run("trigger", *arguments, kubeconfig=stage.caller(*rules)))
    assert f"you need permission to {missing}" in error
    assert stage.state() == "Planning"


def test_a_watch_without_the_right_to_list_pods_ends_at_once(stage: Stage) -> None:
    stage.create(trigger())
    done = stage.run("trigger", "go", "--watch", kubeconfig=stage.caller(TRIGGERS))
    assert done.returncode == 1
    assert f"error: you need permission to list pods in namespace {stage.namespace}" in done.stderr


def test_the_rights_that_the_help_names_are_enough(stage: Stage) -> None:
    stage.create(trigger())
    caller = stage.caller(TRIGGERS, ("", "pods", "list"))
    assert stage.run("trigger", "go", "--watch", kubeconfig=caller).returncode == 0
    assert stage.run("trigger", "--list", kubeconfig=caller).returncode == 0


def _squeezed(text: str) -> list[str]:
    """Return the lines with two spaces between the cells that are not empty."""
    return [re.sub(r" {2,}", "  ", line).strip() for line in text.splitlines()]


def _ignored(podset: str, first: str) -> str:
    return f"it is ignored: of the triggers of set {podset}, only the first by name counts, {first}"
