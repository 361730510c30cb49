"""Draw the output of `longshore demo` as an SVG picture of a terminal, for the README.

Draw it again after each change of the demo: `.venv/bin/python -m tests.demo_picture`
"""

import re
import subprocess
import sys
from html import escape
from pathlib import Path

FILE = Path(__file__).parents[1] / "docs" / "images" / "demo.svg"
_COLUMN, _LINE, _MARGIN, _TOP = 8.4, 19, 24, 62
_BARS = {"█": "#38bdf8", "▓": "#fbbf24", "░": "#334155"}


def demo_output() -> str:
    """Return the output of the demo, with a fixed speed, because the speed differs between machines."""
    command = [sys.executable, "-m", "longshore", "demo"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.sub(r"[\d,]+ a second", "1,108 a second", printed)


def picture(output: str) -> str:
    lines = ["$ longshore demo", *(line.rstrip() for line in output.strip().splitlines())]
    width = round(max(map(len, lines)) * _COLUMN + 2 * _MARGIN)
    height = _TOP + len(lines) * _LINE
    dots = "".join(
        f'<circle cx="{_MARGIN + 20 * number}" cy="22" r="6" fill="{color}"/>'
        for number, color in enumerate(("#f87171", "#fbbf24", "#34d399"))
    )
    drawn = "\n".join(_drawn(line, _TOP + number * _LINE) for number, line in enumerate(lines) if line)
    size = f'width="{width}" height="{height}"'
    frame = f'x="1" y="1" width="{width - 2}" height="{height - 2}" rx="10"'
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {size} role="img">
<title>What longshore demo prints</title>
<rect {frame} fill="#0f172a" stroke="#334155" stroke-width="2"/>
{dots}
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14" fill="#e2e8f0">
{drawn}
</g>
</svg>
"""


def _drawn(line: str, y: int) -> str:
    """Draw a line. Bars are rectangles, because some fonts draw their characters wider than letters."""
    parts = []
    for found in re.finditer(r"(█+|▓+|░+)|(?:[^\s█▓░]+ )*[^\s█▓░]+", line):
        x, width = _MARGIN + found.start() * _COLUMN, len(found[0]) * _COLUMN
        if found[1]:
            box = f'x="{x:.1f}" y="{y - 12}" width="{width:.1f}" height="14"'
            parts.append(f'<rect {box} fill="{_BARS[found[1][0]]}"/>')
        else:
            text = escape(found[0], quote=False)
            parts.append(f'<text x="{x:.1f}" y="{y}" textLength="{width:.1f}">{text}</text>')
    return "".join(parts)


if __name__ == "__main__":
    FILE.write_text(picture(demo_output()))
