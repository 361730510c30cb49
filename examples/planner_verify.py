#!/usr/bin/env python3
"""Check that the pods of a namespace run where their plans say: examples/planner_verify.py -n NAMESPACE

It uses longshore if it is installed, and kubectl otherwise. The exit code is 1 if a pod runs on
another node than planned.
"""

import argparse
import importlib.util
import json
import subprocess
import sys
from typing import Any


def verify(namespace: str) -> int:
    """Check with kubectl, and return the exit code. A pod without a node is not a mismatch."""
    plans = listed("scheduleplans.planner.ciena.io", namespace)
    nodes = {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in listed("pods", namespace)}
    mismatches = [
        {"pod": entry["pod"], "node": entry["node"]}
        for plan in plans
        for entry in plan["spec"]["plan"]
        if entry["pod"] not in nodes or nodes[entry["pod"]] not in (None, entry["node"])
    ]
    if mismatches:
        sentence = f"Planner assignment verification failed. Mismatches {json.dumps(mismatches)}"
    elif plans:
        sentence = "Planner assignment verification success"
    else:
        sentence = "No scheduleplan instances found"
    print(sentence)  # noqa: T201 - what the script is for
    return 1 if mismatches else 0


def listed(kind: str, namespace: str) -> list[dict[str, Any]]:
    try:
        found = subprocess.check_output(["kubectl", "get", kind, "-n", namespace, "-o", "json"])
    except FileNotFoundError:
        sys.exit("neither longshore nor kubectl is installed: install one of them")
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)  # kubectl has printed the error
    items: list[dict[str, Any]] = json.loads(found)["items"]
    return items


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Check that pods run where their plans say.")
    parser.add_argument("-n", "--namespace", default="default", help="default: default")
    asked = parser.parse_args().namespace
    if importlib.util.find_spec("longshore") is None:
        sys.exit(verify(asked))
    sys.exit(subprocess.call([sys.executable, "-m", "longshore", "verify", "-n", asked]))
