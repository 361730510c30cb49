"""How long-running commands end: SIGTERM and Ctrl-C ask them to stop, and they finish what is under way."""

import asyncio
import signal


def stop_event() -> asyncio.Event:
    """An event that SIGTERM or SIGINT sets, in the running loop."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop
