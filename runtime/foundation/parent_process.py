"""continue_after_parent(): a stopped child process goes on when the process that started it ends.

A child notices the end of its parent by a pipe or socket, and then ends in order. One that is
stopped (SIGSTOP, a debugger that was left) would notice nothing, and keep its ports for ever.

SIGKILL in place of SIGCONT would end it too, but Linux sends this signal when the *thread* that
started the child ends, of which the process may have others; and a child that runs must be able to
finish its requests.
"""

from __future__ import annotations

import contextlib
import ctypes
import signal
import sys

_SET_SIGNAL_AT_END_OF_PARENT = 1  # prctl(PR_SET_PDEATHSIG)


def continue_after_parent() -> None:
    """Let this process go on, if it is stopped then, when its parent ends; on Linux only.

    To be called before the first look at whether the parent has ended: if it has, no signal comes.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_SIGNAL_AT_END_OF_PARENT, signal.SIGCONT, 0, 0, 0)
