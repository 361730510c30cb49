"""Logs of the long-running commands: one line an event, for people on a terminal and JSON elsewhere."""

import logging
import sys

import structlog


def configure(*, verbose: bool) -> None:
    """Write logs to stderr; `verbose` adds a line for every pod."""
    renderer: structlog.typing.Processor
    people = sys.stderr.isatty()
    renderer = structlog.dev.ConsoleRenderer() if people else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG if verbose else logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
