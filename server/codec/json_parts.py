"""Parse JSON with orjson while the garbage collector does not run.

It would visit the new lists and objects many times, and none of them can be garbage yet.
"""

from __future__ import annotations

from typing import Any

import orjson

from runtime.api import collector_pause

# The size from which bodies are parsed on another thread, `step_runner.OFF_LOOP_BYTES`. That is not
# imported: `runstep run` reads JSON too, and the step runner takes 0.15 s to import.
LARGE_BODY_BYTES = 1 << 18


def load_part(text: bytes) -> Any:
    """Parse a part of a large JSON text with orjson; raise orjson.JSONDecodeError."""
    with collector_pause:
        return orjson.loads(text)
