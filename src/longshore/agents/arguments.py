"""The arguments of an agent, from a configuration or from environment variables.

A mistake in a configuration is an error. An invalid environment variable is ignored with a warning in the
log, and the default applies, as it always has.
"""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
import structlog

from longshore.errors import UserError

Args = TypeVar("Args", bound=msgspec.Struct)

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")

log = structlog.get_logger()


def arguments(kind: type[Args], args: Any, *, name: str) -> Args:
    """Return the arguments of the plugin, which are given in camel case or as a struct. Raises UserError."""
    if isinstance(args, kind):
        return args
    try:
        return msgspec.convert(dict(args or {}), kind)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise UserError(f"arguments of {name}: {error}") from error


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
