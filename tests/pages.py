"""Pages of docs/ with commands and their output. Tests run the commands in a shell, on a real cluster."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.waiting import eventually

from longshore.dev.build import build

ROOT = Path(__file__).parents[1]


class Page:
    """A page of docs/. `varying` has patterns for the words that differ between runs."""

    def __init__(self, name: str, *, varying: Sequence[str]) -> None:
        self.text = (ROOT / "docs" / name).read_text()
        self._varying = varying

    def blocks(self, language: str) -> list[str]:
        return re.findall(rf"^```{language}\n(.*?)^```", self.text, flags=re.MULTILINE | re.DOTALL)

    def steps(self) -> Iterator[tuple[str, str]]:
        """Yield every command of the page, with the output that the page shows for it."""
        for block in self.blocks("console"):
            for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, output = step.partition("\n")
                yield command, output

    def rows(self, heading: str) -> list[list[str]]:
        """Return the rows of the table with this heading in its first column."""
        [table] = [
            table
            for table in re.findall(r"(?:^\|.*\n)+", self.text, flags=re.MULTILINE)
            if table.startswith(f"| {heading} |")
        ]
        return [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines()[2:]]

    def shows(self, shown: str, output: str) -> bool:
        """Whether the output is what the page shows. Column widths can differ; `...` stands for any lines."""
        return re.fullmatch(self._pattern(shown), output) is not None

    def _pattern(self, shown: str) -> str:
        def word(text: str) -> str:
            return next((each for each in self._varying if re.fullmatch(each, text)), re.escape(text))

        return "".join(
            r"(?:.*\n)*?" if line == "..." else rf"\s*{r' +'.join(map(word, line.split()))} *\n"
            for line in shown.splitlines()
        )

    def follow(
        self,
        session: "Session",
        steps: Iterator[tuple[str, str]],
        *,
        until: Callable[[str], bool] = lambda _command: False,
        after: Callable[[str], None] = lambda _command: None,
    ) -> str:
        """Run the commands of the page. Stop before the one that `until` accepts, and return it."""
        for command, shown in steps:
            if until(command):
                return command
            if re.search(r"\b(get|describe)\b", command):
                self.eventually(partial(session.run, command), shown)
            else:
                output = session.run(command)
                assert not shown or self.shows(shown, output), f"{command}\n{output}"
            after(command)
        return ""

    def eventually(self, check: Callable[[], str], shown: str) -> None:
        """Wait until the output is what the page shows."""
        eventually(check, lambda output: self.shows(shown, output), what=f"shown: {shown}", within=30)


class Session:
    """A shell that keeps its exported variables from one command to the next, and a second window."""

    def __init__(self, folder: Path, variables: Mapping[str, str] | None = None) -> None:
        cache, self._programs = folder / "cache", folder / "bin"
        cache.mkdir()
        (cache / "control-plane").symlink_to(build().parent)
        self._programs.mkdir()
        (self._programs / "kubectl").symlink_to(build() / "kubectl")
        self._exported = folder / "exported"
        self._exported.touch()
        self.log = folder / "background.log"
        self._environment = {
            "PATH": f"{self._programs}:{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(folder),
            "LONGSHORE_CACHE": str(cache),
            **(variables or {}),
        }

    def stand_in(self, logs: Mapping[str, Path]) -> None:
        """Use processes instead of containers: `kubectl logs … -c NAME` prints the log of a process."""
        kubectl = self._programs / "kubectl"
        cases = "".join(f'*" -c {name} "*) exec cat {file};;\n' for name, file in logs.items())
        kubectl.unlink()
        kubectl.write_text(
            f'#!/bin/sh\nif [ "$1" = logs ]; then case "$* " in\n{cases}esac; fi\n'
            f'exec {build() / "kubectl"} "$@"\n'
        )
        kubectl.chmod(0o755)

    def run(self, command: str) -> str:
        """Run the command, and return its output, with standard error first."""
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
    def in_background(self, command: str) -> Iterator[subprocess.Popen[bytes]]:
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
