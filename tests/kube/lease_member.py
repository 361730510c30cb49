"""A process that takes part in a leader election and prints what happens; SIGTERM stops it cleanly.

python lease_member.py KUBECONFIG NAMESPACE LEASE IDENTITY
"""

import signal
import sys
import threading

import structlog

from longshore.kube.client import Client
from longshore.kube.config import load
from longshore.kube.lease import LeaderElector, boot_time

SAMPLE_SECONDS = 0.005


def tell(what: str, when: float | None = None) -> None:
    """Print the event with a time that is comparable between all processes of the machine."""
    sys.stdout.write(f"{what} {boot_time() if when is None else when}\n")
    sys.stdout.flush()


def main(kubeconfig: str, namespace: str, name: str, identity: str) -> None:
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    over = threading.Event()

    def on_stopped_leading() -> None:
        tell("lost")
        over.set()

    elector = LeaderElector(
        lambda: Client(load(kubeconfig)),
        namespace=namespace,
        name=name,
        identity=identity,
        on_started_leading=lambda: None,
        on_stopped_leading=on_stopped_leading,
    )
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    elector.start()
    tell("ready")
    acted = None
    while not over.wait(SAMPLE_SECONDS):
        now = boot_time()
        if elector.holds_lease():
            if acted is None:
                tell("acts", now)
            acted = now
    tell("acted-last", acted)
    elector.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
