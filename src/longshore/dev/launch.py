"""Replaces itself with another program, which ends when its parent does, for whatever reason.

It runs as a script between the owner of a cluster and each component. The request for a SIGKILL when the
parent dies survives exec. Making it here, instead of in a forked copy of the owner, is safe with threads.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def _main() -> None:
    parent, program, *arguments = sys.argv[1:]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != int(parent):  # the parent died before the request was made
        sys.exit(1)
    os.execv(program, [program, *arguments])  # noqa: S606


if __name__ == "__main__":
    _main()
