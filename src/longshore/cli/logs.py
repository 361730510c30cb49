"""Logs of the long-running commands: one line an event, for people on a terminal and JSON elsewhere."""

import json
import logging
import sys

import msgspec
import structlog

# Levels by the names that extenders have always had; TRACE is DEBUG and whole requests with it.
LEVELS = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARNING": logging.WARNING,
    "ERROR": logging.ERROR,
    "ALERT": logging.CRITICAL,
}


def configure(*, verbose: bool) -> None:
    """Write logs to stderr; `verbose` adds a line for every pod."""
    _configure(logging.DEBUG if verbose else logging.INFO)


def configure_level(name: str) -> str:
    """Write logs from this level on, INFO if there is none of the name in any case; gives its name."""
    name = name.upper() if name.upper() in LEVELS else "INFO"
    _configure(LEVELS[name])
    return name


def _configure(level: int) -> None:
    people = sys.stderr.isatty()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            structlog.dev.ConsoleRenderer() if people else _json_line,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr)
        if people
        else structlog.BytesLoggerFactory(file=sys.stderr.buffer),
        cache_logger_on_first_use=True,
    )


def _json_line(_logger: object, _method: str, event: structlog.typing.EventDict) -> bytes:
    try:
        return msgspec.json.encode(event, enc_hook=repr)
    except (ValueError, OverflowError, TypeError):
        # Half of a character, or a number without end: whatever it is, a line is written.
        return json.dumps(event, default=repr, skipkeys=True).encode()


def configure_plain(verbosity: int) -> None:
    """`time - name - LEVEL - message`, as the static scheduler always wrote; 0 for errors alone, up to 3."""
    levels = (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="%Y-%m-%d %H:%M:%S.%f", utc=False),
            structlog.processors.format_exc_info,
            _plain_line,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(levels[min(verbosity, 3)]),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )


def _plain_line(_logger: object, _method: str, event: structlog.typing.EventDict) -> str:
    # Thousandths after a comma, as Python's logging has them.
    time = event.pop("timestamp")[:-3].replace(".", ",")
    level, message = event.pop("level").upper(), event.pop("event")
    details = "".join(f", {name}: {value}" for name, value in event.items())
    return f"{time} - longshore.static - {level} - {message}{details}"
