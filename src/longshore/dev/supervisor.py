"""The process that owns a named cluster: started by `longshore dev up`, ended by `longshore dev down`.

It writes one line to stdout when the cluster is ready or has failed, and then waits. The components end with
it in any case. A component that ends early is logged and shown by `longshore dev list`, but not restarted: on
a development machine, one wants to see a crash.
"""

import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

import msgspec
import structlog

from longshore.dev.admin import RefusedError
from longshore.dev.clusters import ClusterRecord, Options, folder_of
from longshore.dev.control_plane import ControlPlane
from longshore.dev.owner import Owner
from longshore.errors import UserError

_LOOK_SECONDS = 1.0

log = structlog.stdlib.get_logger()


def main() -> None:
    """Run until SIGTERM."""
    options = msgspec.json.decode(sys.argv[1], type=Options)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    signal.signal(signal.SIGTERM, _exit)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    record = ClusterRecord(
        options=options, supervisor=Owner.current(), created=time.time(), programs=sys.argv[2]
    )
    try:
        record.write()
        plane = ControlPlane.start(
            nodes=options.nodes,
            scheduler=options.scheduler,
            kwok=options.kwok,
            controller_manager=options.controller_manager,
            folder=folder_of(options.name),
        )
    except (UserError, OSError, RefusedError) as error:
        log.exception("cluster failed")
        _answer(str(error))
        sys.exit(1)
    with plane:
        record.server = plane.server
        record.components = {part.name: Owner.of(part.pid) for part in plane.components if part.pid}
        record.ready = True
        record.write()
        log.info("cluster ready", server=plane.server)
        _answer(None)
        _watch(plane, record)


def _watch(plane: ControlPlane, record: ClusterRecord) -> None:
    while True:
        time.sleep(_LOOK_SECONDS)
        for part in plane.components:
            if part.exit_code is not None and part.name not in record.ended:
                log.error("component ended", component=part.name, exit_code=part.exit_code, log=str(part.log))
                record.ended.append(part.name)
                record.write()


def _answer(error: str | None) -> None:
    """Answer the waiting command, which may have been killed meanwhile, and close its pipe."""
    try:
        os.write(sys.stdout.fileno(), msgspec.json.encode({"error": error}) + b"\n")
    except BrokenPipeError:
        log.warning("the command that started this cluster has ended")
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), sys.stdout.fileno())


def _exit(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a signal handler
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(0)


if __name__ == "__main__":
    main()
