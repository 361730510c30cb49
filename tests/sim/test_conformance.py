"""The engine against 2,700 recorded answers of kube-scheduler 1.36.3, and the command that compares them."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from longshore.cli.conformance import command
from longshore.sim.conformance import examine, read_cases, read_expected

DATA = Path(__file__).parents[1] / "data"
CASES, EXPECTED = DATA / "cases.jsonl.gz", DATA / "expected.jsonl.gz"


# Two tests, so that two workers share the cases.
def test_all_cases_agree_each_on_a_new_engine() -> None:
    assert_all_agree(shared=False)


def test_all_cases_agree_when_one_engine_runs_a_whole_family() -> None:
    assert_all_agree(shared=True)


def assert_all_agree(*, shared: bool) -> None:
    cases, expected = read_cases(CASES), read_expected(EXPECTED)
    assert len(cases) == len({case.id for case in cases}) == 2700
    differing = {case.id: found for case, found in examine(cases, expected, shared=shared) if found}
    assert differing == {}


class Files:
    """Copies of some cases and their answers, which tests change."""

    def __init__(self, folder: Path, number: int) -> None:
        self.cases, self.expected = folder / "cases.jsonl", folder / "expected.jsonl"
        self.cases.write_text("".join(_lines(CASES)[:number]))
        self.expected.write_text("".join(_lines(EXPECTED)[:number]))

    def alter(self, old: str, new: str) -> None:
        text = self.expected.read_text()
        assert old in text
        self.expected.write_text(text.replace(old, new, 1))

    def compare(self, *options: str) -> Result:
        return CliRunner().invoke(command, [str(self.cases), str(self.expected), *options])


def _lines(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().splitlines(keepends=True)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path, 20)


@pytest.mark.parametrize("options", [(), ("--shared",)])
def test_agreement_is_reported_by_family_and_in_the_last_line(files: Files, options: tuple[str, ...]) -> None:
    result = files.compare(*options)
    assert result.exit_code == 0
    *families, last = result.stdout.splitlines()
    assert last == "agreement: 20/20"
    assert sum(int(line.split()[-1].partition("/")[2]) for line in families) == 20


def test_a_case_that_differs_is_shown_in_full_and_the_exit_code_is_1(files: Files) -> None:
    files.alter('"totals":{"', '"totals":{"no-such-node":7,"')
    result = files.compare()
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1] == "agreement: 19/20"
    assert "differs:" in result.stdout
    assert "  totals\n    expected: {'no-such-node': 7" in result.stdout
    assert "\n    actual:   {" in result.stdout


def test_no_more_differences_are_shown_than_asked_for(files: Files) -> None:
    for _ in range(3):
        files.alter('"totals":{"', '"Totals":{"')
    assert files.compare().stdout.count("differs:") == 3
    few = files.compare("--differences", "1")
    assert few.stdout.count("differs:") == 1
    assert few.stdout.splitlines()[-1] == "agreement: 17/20"


def test_no_cases_at_all_are_no_agreement(tmp_path: Path) -> None:
    result = Files(tmp_path, 0).compare()
    assert result.exit_code == 1
    assert result.stdout == "agreement: 0/0\n"


def longshore(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "longshore", "conformance", *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
    )


def broken(kind: str, files: Files) -> str:
    """Break the files, and return words of the one line that reports the problem."""
    match kind:
        case "no such file":
            files.cases.unlink()
            return "cases.jsonl: cannot be read"
        case "no JSON":
            files.expected.write_text('{"id": "a"}\nnonsense\n')
            return "expected.jsonl: line 2: "
        case "a pod is missing":
            files.cases.write_text('{"id": "a-1"}\n')
            return "cases.jsonl: line 1: "
        case "an answer is missing":
            files.expected.write_text("")
            return "has no expected answer"
        case _:
            files.cases.write_bytes(CASES.read_bytes()[:1000])
            return "cases.jsonl: cannot be read"


@pytest.mark.parametrize(
    "kind", ["no such file", "no JSON", "a pod is missing", "an answer is missing", "cut short"]
)
def test_bad_files_are_told_in_one_line(files: Files, kind: str) -> None:
    words = broken(kind, files)
    done = longshore(files.cases, files.expected)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
