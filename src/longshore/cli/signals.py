"""The signals that stop long-running commands: SIGTERM and SIGINT, which Ctrl-C sends."""

import asyncio
import signal


def stop_event() -> asyncio.Event:
    """Return an event that SIGTERM or SIGINT sets. Call this in the running loop."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop
