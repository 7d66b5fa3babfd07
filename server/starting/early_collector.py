"""The garbage collector rests while a server is imported.

Modules, classes and functions stay until the end. Visiting them again and again while more are made
takes a tenth of the time until the port is open.
"""

from __future__ import annotations

import gc


def pause_collector() -> None:
    """Collect no cycles until `resume_collector`."""
    gc.disable()


def resume_collector() -> None:
    """Collect cycles again, but not those of the objects that exist now."""
    gc.freeze()
    gc.enable()
