"""`longshore verify` and examples/planner_verify.py on the real control plane."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.live.setcommands.commands import NO_PLANS, SUCCESS, Done, Stage, as_json, the_error, trigger

from longshore.dev.build import build

SCRIPT = Path(__file__).parents[3] / "examples" / "planner_verify.py"
FAILED = "Planner assignment verification failed. Mismatches "

Verify = Callable[[Stage], Done]


def by_command(stage: Stage) -> Done:
    return stage.run("verify")


def by_script(stage: Stage) -> Done:
    """Run the script where the package is installed and kubectl is not."""
    return script(stage, [sys.executable], {"PATH": "/nonexistent"})


def by_kubectl(stage: Stage) -> Done:
    """Run the script where kubectl is installed and the package is not."""
    return script(stage, [sys.executable, "-I", "-S"], {"PATH": f"{build()}{os.pathsep}{os.environ['PATH']}"})


def script(stage: Stage, python: list[str], environment: dict[str, str]) -> Done:
    return subprocess.run(
        [*python, str(SCRIPT), "-n", stage.namespace],
        capture_output=True,
        text=True,
        check=False,
        env=stage.environment() | environment,
    )


everyway = pytest.mark.parametrize("verify", [by_command, by_script, by_kubectl])


@everyway
def test_two_followed_plans_and_one_pending_pod(stage: Stage, verify: Verify) -> None:
    a, b, _ = stage.nodes
    stage.create(
        *(stage.member(name) for name in ("one", "two")),
        stage.member("three", "letters"),
        stage.plan({"one": a, "two": b}),
        stage.plan({"three": b}, "letters"),
    )
    stage.bind({"one": a, "three": b})
    done = verify(stage)
    assert (done.returncode, done.stdout, done.stderr) == (0, SUCCESS, "")


@everyway
def test_a_pod_elsewhere_and_one_that_is_gone_in_different_plans(stage: Stage, verify: Verify) -> None:
    a, b, _ = stage.nodes
    stage.create(
        *(stage.member(name) for name in ("one", "two")),
        stage.plan({"one": a, "two": b}),
        stage.plan({"gone": b}, "letters"),
    )
    stage.bind({"one": a, "two": a})
    done = verify(stage)
    assert done.returncode == 1
    assert done.stdout.startswith(FAILED)
    assert json.loads(done.stdout.removeprefix(FAILED)) == [
        {"pod": "two", "node": b},
        {"pod": "gone", "node": b},
    ]


@everyway
def test_a_namespace_without_any_plan(stage: Stage, verify: Verify) -> None:
    stage.create(stage.member("one"))
    done = verify(stage)
    assert (done.returncode, done.stdout, done.stderr) == (0, NO_PLANS, "")


def test_the_script_looks_at_the_default_namespace_unless_told(stage: Stage) -> None:
    stage.create(stage.plan({"gone": stage.nodes[0]}))
    done = subprocess.run(
        [sys.executable, str(SCRIPT)], capture_output=True, text=True, check=False, env=stage.environment()
    )
    assert (done.returncode, done.stdout) == (0, NO_PLANS)


def test_the_script_without_kubectl_and_package_reports_it(stage: Stage) -> None:
    done = script(stage, [sys.executable, "-I", "-S"], {"PATH": "/nonexistent"})
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "neither longshore nor kubectl is installed: install one of them\n"


def test_each_mismatch_is_explained_on_stderr(stage: Stage) -> None:
    a, b, _ = stage.nodes
    stage.create(stage.member("one"), stage.plan({"one": b, "gone": a}))
    stage.bind({"one": a})
    assert stage.run("verify").stderr.splitlines() == [
        f"{stage.namespace}/gone is planned on {a}: the pod does not exist",
        f"{stage.namespace}/one is planned on {b}: the pod is on {a}",
    ]


def test_a_mismatch_that_counts_only_with_strict(stage: Stage) -> None:
    a, _, _ = stage.nodes
    stage.create(trigger(), *(stage.member(name) for name in ("one", "two")), stage.plan({"one": a}))
    assert stage.run("verify").stdout == SUCCESS
    done = stage.run("verify", "--strict", "-o", "json")
    assert as_json(done, code=1) == {
        "success": False,
        "plans": 1,
        "entries": 1,
        "strict": True,
        "mismatches": [
            {
                "namespace": stage.namespace,
                "podSet": "batch",
                "pod": "one",
                "node": a,
                "runsOn": "",
                "reason": "the pod has no node yet",
            },
            {
                "namespace": stage.namespace,
                "podSet": "batch",
                "pod": "two",
                "node": "",
                "runsOn": "",
                "reason": "the plan has no entry for the pod",
            },
        ],
    }


def test_no_plan_at_all_if_one_is_strict(stage: Stage) -> None:
    done = stage.run("verify", "--strict")
    assert (done.returncode, done.stdout) == (1, NO_PLANS)


def test_all_namespaces_are_named_with_their_pods(stage: Stage) -> None:
    stage.create(stage.plan({"gone": stage.nodes[0]}))
    done = stage.run("verify", "-A", namespace=None)
    assert done.returncode == 1
    mismatch = {"namespace": stage.namespace, "pod": "gone", "node": stage.nodes[0]}
    assert mismatch in json.loads(done.stdout.removeprefix(FAILED))


@pytest.mark.parametrize(
    ("rules", "missing"),
    [
        ((), "list scheduleplans.planner.ciena.io in namespace"),
        ((("planner.ciena.io", "scheduleplans", "list"),), "list pods in namespace"),
    ],
)
def test_a_right_that_is_missing_is_named(
    stage: Stage, rules: tuple[tuple[str, str, str], ...], missing: str
) -> None:
    stage.create(stage.plan({"gone": stage.nodes[0]}))
    error = the_error(stage.run("verify", kubeconfig=stage.caller(*rules)))
    assert f"you need permission to {missing} {stage.namespace}" in error
