"""Reads the arguments of agents from environment variables.

As in the original agents, a variable with an invalid value is ignored, and the log says so. Arguments in a
configuration must be valid (see `config.plugin_arguments`).
"""

import re
from collections.abc import Mapping

import structlog

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")

log = structlog.get_logger()


def whole_numbers(
    environ: Mapping[str, str], variables: Mapping[str, str], *, least: int, most: int
) -> dict[str, object]:
    """Return the arguments whose environment variables are integers within the range."""
    found: dict[str, object] = {}
    for variable, argument in variables.items():
        text = environ.get(variable, "")
        if _WHOLE_NUMBER.fullmatch(text) and least <= int(text) <= most:
            found[argument] = int(text)
        elif text:
            warn_invalid(variable, text, f"an integer from {least} to {most}")
    return found


def warn_invalid(variable: str, text: str, expected: str) -> None:
    log.warning("invalid environment variable ignored", variable=variable, value=text, expected=expected)
