"""`longshore pin` and `longshore unpin` before any request: which arguments can be combined."""

import subprocess
import sys

import pytest


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "longshore", *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("pin",), "give POD and NODE, or --record STATEFULSET, or --list"),
        (("pin", "web-0"), "give POD and NODE, or --record STATEFULSET, or --list"),
        (("pin", "--list", "web-0", "n1"), "--list cannot be combined with"),
        (("pin", "--list", "--record", "web"), "--list cannot be combined with"),
        (("pin", "--list", "--force"), "--list cannot be combined with"),
        (("pin", "--list", "--also"), "--list cannot be combined with"),
        (("pin", "--list", "-A", "-n", "shop"), "-n and -A cannot be combined"),
        (("pin", "--record", "web", "web-0", "n1"), "--record cannot be combined with"),
        (("pin", "--record", "web", "--also"), "--record cannot be combined with"),
        (("pin", "--record", "web", "-A"), "-A requires --list"),
        (("pin", "web-0", "n1", "-A"), "-A requires --list"),
        (("pin", "shop/web-0", "n1", "-n", "bar"), "shop/web-0 and -n bar name different namespaces"),
        (("unpin", "shop/web-0", "-n", "bar"), "shop/web-0 and -n bar name different namespaces"),
        (("unpin",), "Missing argument 'POD'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_arguments_that_do_not_go_together_are_one_line(arguments: tuple[str, ...], words: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert f"longshore {arguments[0]} --help" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [("pin", "web-0", "n1"), ("pin", "--list"), ("unpin", "web-0")])
def test_a_kubeconfig_that_is_not_there_is_one_line(arguments: tuple[str, ...]) -> None:
    done = run(*arguments, "--kubeconfig", "/no/such/file")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: cannot read the kubeconfig /no/such/file")
    assert done.stderr.count("\n") == 1
