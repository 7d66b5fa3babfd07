"""What all tests share."""

from __future__ import annotations

import gc
import signal

from hypothesis import settings

# A shell that starts the tests in the background ignores Ctrl-C for them; some press it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No test is about time: a machine that is busy fails nothing. The same examples every time, so that
# a failure is the change's that was made; `make fuzz-properties` looks for new ones.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("new", deadline=None)
settings.load_profile("same")


def pytest_collection_finish() -> None:
    """Keep from the collector what was imported and recorded, a million objects in each worker."""
    gc.collect()
    gc.freeze()
