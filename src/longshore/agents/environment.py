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
    """Return the arguments whose environment variable is a whole number within the range."""
    found: dict[str, object] = {}
    for variable, argument in variables.items():
        text = environ.get(variable, "")
        if _WHOLE_NUMBER.fullmatch(text) and least <= int(text) <= most:
            found[argument] = int(text)
        elif text:
            not_understood(variable, text, f"a whole number from {least} to {most} is needed")
    return found


def not_understood(variable: str, text: str, needed: str) -> None:
    log.warning("environment variable is passed over", variable=variable, value=text, needed=needed)
