"""Logs of the long-running commands: one line for each event, readable on a terminal and JSON elsewhere."""

import json
import logging
import sys

import msgspec
import structlog

# Levels by the names that kube-safe-scheduler uses; TRACE is DEBUG and adds whole requests.
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
    """Write logs from this level up and return its name. The case is ignored; an unknown level means INFO."""
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
        # A lone surrogate or an infinite number, for example: write a line anyway.
        return json.dumps(event, default=repr, skipkeys=True).encode()


def configure_plain(verbosity: int) -> None:
    """Write logs as `time - name - LEVEL - message`, like the static scheduler; 0 logs errors, 3 all."""
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
    # Milliseconds after a comma, as Python's logging writes them.
    time = event.pop("timestamp")[:-3].replace(".", ",")
    level, message = event.pop("level").upper(), event.pop("event")
    details = "".join(f", {name}: {value}" for name, value in event.items())
    return f"{time} - longshore.static - {level} - {message}{details}"
