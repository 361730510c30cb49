"""What an agent is told: by a configuration, strictly, or by environment variables, leniently.

A mistake in a configuration is an error. Environment variables have always been read with a shrug: where one
cannot be read the default counts, and the log says so.
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
    """The arguments of the plugin of this name, in camel case as configurations have them or as they are."""
    if isinstance(args, kind):
        return args
    try:
        return msgspec.convert(dict(args or {}), kind)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise UserError(f"arguments of {name}: {error}") from error


def whole_numbers(
    environ: Mapping[str, str], variables: Mapping[str, str], *, least: int, most: int
) -> dict[str, object]:
    """Arguments by variable: those whose variable is a whole number within the range."""
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
