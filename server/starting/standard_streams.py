"""Standard streams that whoever started the server has closed (`2>&-`): the null device has them.

Otherwise the first files and sockets that the server opens get their descriptors, and what a native
library writes to standard error goes into these: the memory that the processes share, or a
connection.
"""

from __future__ import annotations

import os
import sys


def open_standard_streams() -> None:
    """Open the standard streams that are closed; to be called before anything else is opened."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the lowest free descriptor
            os.set_inheritable(opened, True)  # by the processes that this one starts
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(descriptor, "w", closefd=False))  # noqa: SIM115 - until the end
